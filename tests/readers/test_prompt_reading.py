"""Tests prompt reading: question and context are recognised in prompts of any backend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.readers.extractive import answer
from memarena.readers.probing import PROBE_PROMPT
from memarena.readers.prompt_reading import PromptNotUnderstoodError, read
from memarena.readers.warming import _prompt
from memarena_answering import (
    Asker,
    ContextItem,
    Message,
    PromptStyle,
    ReadingPlan,
    build_prompt,
    count_by_bytes,
    parse_answer,
)

QUESTION = "What did Bo buy?"
FACT = "Bo bought a red kayak."


@pytest.mark.parametrize("style", list(PromptStyle))
@pytest.mark.parametrize("no_system_role", [False, True])
def test_prompts_in_the_reference_layout_are_read_exactly(style: PromptStyle, no_system_role: bool) -> None:
    plan = ReadingPlan("m", 64, style=style, no_system_role=no_system_role)
    items = (ContextItem("Ana: We met Bo.\nBo: I bought a red kayak.", "2025-01-06"), ContextItem("Cy: Rain again."))
    prompt = build_prompt(items, QUESTION, "2025-01-07", Asker("owner"), plan, count_by_bytes)
    parts = read(prompt.messages)
    assert (len(parts.items), parts.question) == (2, QUESTION)
    parsed = parse_answer(answer(parts).as_json())
    assert (parsed.answer, parsed.parse) == ("I bought a red kayak.", "json")
    assert "red kayak" in parsed.reason


@pytest.mark.parametrize(
    "user",
    [
        f"Context:\n- {FACT}\n- It rained.\n\nQuestion: {QUESTION}",
        f"Question: {QUESTION}\n\nContext:\n- {FACT}\n- It rained.\n\nAnswer:",
        f"## Memories\n\n1. [2025-01-06] {FACT}\n2. It rained.\n\n## Question\n{QUESTION}\n\n## Answer",
        f"**Relevant memories:**\n* {FACT}\n\n**Question:** {QUESTION}\n**Answer:**",
        f"<context>\n{FACT}\n</context>\n<question>{QUESTION}</question>\nAnswer briefly.",
        f"<question>\n{QUESTION}\n</question>\n<memories>\n<memory id='7'>{FACT}</memory>\n</memories>",
        f'{{"question": "{QUESTION}", "memories": [{{"memory": "{FACT}", "created_at": "2025-01-06"}}]}}',
        f'The context:\n[{{"date": "2025-01-06", "text": "{FACT}"}},\n {{"text": "Oh."}}]\nQuestion: {QUESTION}',
        f'Context:\n```json\n[{{"time": "2025-01-06", "text": "{FACT}"}}]\n```\n\n{QUESTION}',
        f"{FACT}\nIt rained.\n\n{QUESTION}\nReply briefly.",
        f"{QUESTION}\n\n{FACT}\nAna: Do you know it?\nBo: No.",
        f"Relevant memories:\n--- 2025-01-06 ---\nAna: Rain?\nBo: {FACT}\n\nCurrent question: {QUESTION}\nAnswer:",
        f"Retrieved context:\n[1] {FACT}\n[2] It rained.\n\nUser question: {QUESTION}\nPlease answer concisely.",
        f"Based on these memories about Ana:\n- {FACT}\n\nanswer this: {QUESTION}",
    ],
)
def test_question_and_context_are_found_in_whatever_order_and_layout(user: str) -> None:
    parts = read([Message("system", "You are kind. Could you be brief?"), Message("user", user)])
    assert parts.question == QUESTION
    assert FACT in {item.text.removeprefix("Bo: ") for item in parts.items}
    assert answer(parts).answer == FACT


@pytest.mark.parametrize("label", ["Memories:", "# User memories", "=== context"])
def test_the_system_message_may_hold_the_context(label: str) -> None:
    parts = read([Message("system", f"Be brief.\n\n{label}\n- 2025-01-06: {FACT}"), Message("user", QUESTION)])
    assert parts.items == (ContextItem(FACT, "2025-01-06"),)


def test_times_and_speakers_of_items_are_kept() -> None:
    items = '[{"speaker": "Ana", "content": "Hi.", "date": "2025-01-06"}, "Plain."]'
    assert read([Message("user", f"Notes:\n{items}\nQuestion: {QUESTION}")]).items == (
        ContextItem("Ana: Hi.", "2025-01-06"),
        ContextItem("Plain."),
    )


def test_options_belong_to_the_question() -> None:
    question = "Bo bought a ____.\nA) kayak\nB) kite"
    assert read([Message("user", f"Context:\n- {FACT}\n\nQuestion: {question}")]).question == question


@pytest.mark.parametrize("nothing", ["(no memories found)", "None", "[]", "", "N/A"])
def test_an_empty_context_is_a_context(nothing: str) -> None:
    parts = read([Message("user", f"Context:\n{nothing}\n\nQuestion: {QUESTION}")])
    assert parts.items == ()


@pytest.mark.parametrize(
    ("user", "missing"),
    [
        (f"Context:\n- {FACT}", "no question"),
        (QUESTION, "no context"),
        ("Extract all facts from the talk below.\nAna: Where is it?\nBo: At home.", "no question"),
        ("", "no question"),
    ],
)
def test_a_prompt_without_question_or_context_is_refused(user: str, missing: str) -> None:
    with pytest.raises(PromptNotUnderstoodError, match=rf"{missing}.*--central-reading"):
        read([Message("user", user)])


def test_prompts_that_the_harness_itself_sends_are_understood() -> None:
    assert "greeting" in answer(read([Message("user", PROBE_PROMPT)])).answer
    assert read(_prompt(3, 64).messages).question


@given(st.lists(st.text(), max_size=4))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    try:
        parts = read([Message("user", text) for text in texts])
    except PromptNotUnderstoodError:
        return
    assert parts.question
