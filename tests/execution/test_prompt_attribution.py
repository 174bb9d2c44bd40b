"""Tests prompt attribution: which items a reader saw is derived from its prompt, whichever program built the prompt.

A backend that answers itself reports what it retrieved, not what its prompt had room for.
"""

from __future__ import annotations

import json

from memarena.execution.audit.prompt_attribution import shown_items
from memarena.log.records import GatewayCall, RetrievedItem
from memarena_answering import Asker, ContextItem, PromptStyle, ReadingPlan, build_prompt, count_by_bytes
from memarena_dataset.model import Family

from ..support.logs import make_call, make_cell, make_item, make_question, text_gold

TURNS = [
    f'[text message] Maya: note {n}: the kiln costs {600 + n} euros,\n\n"all in", and {"words " * 12}' for n in range(8)
]
ITEMS = [make_item(text, f"s{n}", score=float(-n)) for n, text in enumerate(TURNS)]


def call(prompt: str) -> GatewayCall:
    question = make_question("q", Family.QA, text_gold("Porto"), "Where?")
    return make_call("c", make_cell("own"), question, ttft_ms=1, server_ms=1, prompt=prompt)


def prompted(style: PromptStyle, budget: int, items: list[RetrievedItem]) -> tuple[str, tuple[int, ...]]:
    """Return a prompt as the kit builds it (JSON of the messages) and the indices of the items in it."""
    plan = ReadingPlan(model="m", max_tokens=16, style=style, max_context_tokens=budget)
    context = [ContextItem(i.text, "2025-01-06T10:00:00Z", i.score) for i in items]
    prompt = build_prompt(context, "What does it cost?", "2025-01-09T00:00:00Z", Asker("owner"), plan, count_by_bytes)
    return json.dumps([{"role": m.role, "content": m.content} for m in prompt.messages]), prompt.kept


def test_the_items_of_a_kit_prompt_are_recognised_for_every_style_and_budget() -> None:
    for style in PromptStyle:
        for budget in (20, 90, 200, 10_000):
            prompt, fitted = prompted(style, budget, ITEMS)
            assert shown_items(ITEMS, [call(prompt)]) == fitted, (style, budget)
        assert len(fitted) == len(ITEMS)


def test_items_with_the_lowest_scores_are_dropped_first() -> None:
    backwards = list(reversed(ITEMS))
    _, fitted = prompted(PromptStyle.TEXT_SESSIONS, 200, backwards)
    assert 0 < len(fitted) < len(ITEMS)
    assert fitted == tuple(range(len(ITEMS) - len(fitted), len(ITEMS)))


def test_items_quoted_in_another_layout_are_recognised() -> None:
    prompt = json.dumps([{"role": "user", "content": f"Notes:\n* {TURNS[2]}\n* {TURNS[5]}\nWhat does it cost?"}])
    assert shown_items(ITEMS, [call(prompt)]) == (2, 5)


def test_a_paraphrased_or_missing_prompt_gives_none() -> None:
    retold = json.dumps([{"role": "user", "content": "Maya mentioned a price. What does it cost?"}])
    assert shown_items(ITEMS, [call(retold)]) is None
    assert shown_items(ITEMS, [call("")]) is None
    assert shown_items(ITEMS, []) is None
    assert shown_items([], [call(retold)]) is None
