"""Tests fitting a context into a reader's window: properties that hold for any token counter."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_answering import (
    AnsweringError,
    Asker,
    ContextItem,
    Prompt,
    PromptStyle,
    PromptTooLongError,
    ReadingPlan,
    TokenCounter,
    build_prompt,
    count_by_bytes,
    split_prompt,
)

OWNER = Asker("owner")


def each(count: Callable[[str], int]) -> TokenCounter:
    """Return a counter of lists from a function that counts one text."""
    return lambda texts: [count(text) for text in texts]


def _noisy(text: str) -> int:
    return sum(hashlib.md5(text[i : i + 3].encode()).digest()[0] % 3 for i in range(0, len(text), 2))


COUNTERS: dict[str, TokenCounter] = {
    "bytes": count_by_bytes,
    "words": each(lambda text: len(text.split())),
    "characters": each(len),
    "digits are dear": each(lambda text: sum(3 if char.isdigit() else 1 for char in text)),
    "depends on neighbours": each(_noisy),
    "more than the sum of its parts": each(lambda text: math.ceil(len(text) ** 1.15)),
    "less than the sum of its parts": each(lambda text: math.ceil(len(text) ** 0.9)),
}
WORDS = st.lists(
    st.sampled_from(["a", "kayak", "2025", "Übermut", "\n", "東京タワーに行きました", "x" * 70]), max_size=60
)
ITEMS = st.lists(
    st.builds(
        ContextItem,
        WORDS.map(" ".join),
        st.sampled_from(["", "2025-01-06T09:00:00Z"]),
        st.sampled_from([0.0, 0.5, 1.0, -2.0, math.nan, math.inf]),
    ),
    max_size=12,
)


def total(prompt: Prompt, count: TokenCounter) -> int:
    return sum(count([message.content for message in prompt.messages]))


def rank(item: ContextItem) -> float:
    return -math.inf if math.isnan(item.score) else item.score


@pytest.mark.parametrize("name", COUNTERS)
@settings(max_examples=40, deadline=None)
@given(items=ITEMS, window=st.integers(1_000, 9_000), budget=st.integers(0, 2_000), style=st.sampled_from(PromptStyle))
def test_no_prompt_exceeds_its_limits_and_the_best_items_survive_in_order(
    name: str, items: list[ContextItem], window: int, budget: int, style: PromptStyle
) -> None:
    count = COUNTERS[name]
    plan = ReadingPlan(
        "m", 64, style=style, context_window_tokens=window, max_context_tokens=budget, counts_tokens=True
    )
    try:
        prompt = build_prompt(items, "What was it?", "", OWNER, plan, count)
    except PromptTooLongError:
        empty = build_prompt([], "What was it?", "", OWNER, ReadingPlan("m", 64, style=style), count)
        assert total(empty, count) + 64 > window - 48
        return
    assert prompt.prompt_tokens == total(prompt, count)
    assert prompt.prompt_tokens + plan.max_tokens <= window
    assert budget == 0 or prompt.context_tokens <= budget
    assert prompt.kept_items + prompt.dropped_items == len(items)

    parts = split_prompt(prompt.messages)
    assert parts is not None
    item_texts = [item.text for item in parts.items]
    assert len(item_texts) == prompt.kept_items
    by_rank = sorted(range(len(items)), key=lambda i: (-rank(items[i]), i))
    kept_indices = sorted(by_rank[: prompt.kept_items])
    originals = [
        items[i].text if style is PromptStyle.JSON_CONTEXT else items[i].text.strip("\n") for i in kept_indices
    ]
    if prompt.cut_items:
        assert prompt.kept_items == 1
        assert originals[0].startswith(item_texts[0])
        assert len(item_texts[0]) < len(originals[0])
    else:
        assert item_texts == originals


@given(items=ITEMS)
@settings(deadline=None)
def test_nothing_is_dropped_where_everything_fits(items: list[ContextItem]) -> None:
    plan = ReadingPlan("m", 64, context_window_tokens=100_000, max_context_tokens=50_000)
    prompt = build_prompt(items, "q", "", OWNER, plan, count_by_bytes)
    assert (prompt.kept_items, prompt.dropped_items, prompt.cut_items) == (len(items), 0, 0)


def items_of_words(*scores: float, words: int = 100) -> list[ContextItem]:
    return [ContextItem(f"{chr(97 + i % 26)} " * words, score=score) for i, score in enumerate(scores)]


def first_letters(prompt: Prompt) -> str:
    parts = split_prompt(prompt.messages)
    assert parts is not None
    return "".join(item.text[0] for item in parts.items)


WORD_COUNTER = COUNTERS["words"]


def test_the_lowest_score_is_dropped_first_and_of_equal_scores_the_later_item() -> None:
    def kept(scores: Sequence[float], budget: int) -> str:
        plan = ReadingPlan("m", 64, max_context_tokens=budget)
        return first_letters(build_prompt(items_of_words(*scores), "q", "", OWNER, plan, WORD_COUNTER))

    assert kept([1, 3, 2], 310) == "abc"
    assert kept([1, 3, 2], 290) == "bc"
    assert kept([1, 3, 2], 190) == "b"
    assert kept([1, 1, 1], 290) == "ab"


def test_a_single_item_that_is_too_long_is_truncated_at_a_word() -> None:
    item = ContextItem("\n".join(["alpha beta gamma delta"] * 50))
    plan = ReadingPlan("m", 64, max_context_tokens=43)
    prompt = build_prompt([item], "q", "", OWNER, plan, WORD_COUNTER)
    parts = split_prompt(prompt.messages)
    assert parts is not None
    assert prompt.cut_items == 1
    assert 36 <= len(parts.items[0].text.split()) <= 43
    assert parts.items[0].text.split()[-1] in {"alpha", "beta", "gamma", "delta"}


@pytest.mark.parametrize("budget", range(10, 60, 7))
@pytest.mark.parametrize("length", range(1, 8))
def test_a_text_without_spaces_is_truncated_between_characters(length: int, budget: int) -> None:
    plan = ReadingPlan("m", 64, max_context_tokens=budget)
    group = "x" * length + "e\u0301"
    prompt = build_prompt([ContextItem(group * 200)], "q", "", OWNER, plan, count_by_bytes)
    parts = split_prompt(prompt.messages)
    assert parts is not None
    item_text = parts.items[0].text
    assert prompt.cut_items == 1
    assert item_text
    assert not item_text.endswith("e"), "the accent of the last letter is cut off"


def test_a_question_that_leaves_no_room_for_context_is_an_error() -> None:
    plan = ReadingPlan("tiny", 64, context_window_tokens=512, counts_tokens=True)
    with pytest.raises(PromptTooLongError, match=r"window of 512 tokens of 'tiny'"):
        build_prompt([ContextItem("x")], "word " * 3000, "", OWNER, plan, count_by_bytes)


def test_reply_and_template_are_reserved_and_a_quarter_of_the_window_for_estimates() -> None:
    items = items_of_words(*[1.0] * 900, words=10)
    for exact, share in ((True, 4000), (False, 3000)):
        for reply in (64, 800):
            plan = ReadingPlan("m", reply, context_window_tokens=4000, counts_tokens=exact)
            size = build_prompt(items, "q", "", OWNER, plan, count_by_bytes).prompt_tokens
            assert share - reply - 48 - 60 < size <= share - reply - 48


@pytest.mark.parametrize(("budget", "most_calls"), [(5_000, 1), (1_500, 3), (500, 4)])
def test_fitting_needs_few_calls_of_the_counter(budget: int, most_calls: int) -> None:
    rounds = 0

    def count(texts: Sequence[str]) -> Sequence[int]:
        nonlocal rounds
        rounds += 1
        return count_by_bytes(texts)

    items = [ContextItem("some words that somebody said\n" * 100, score=i) for i in range(5)]
    build_prompt(items, "q", "", OWNER, ReadingPlan("m", 64, max_context_tokens=budget), count)
    assert rounds <= most_calls


def test_a_counter_that_loses_texts_is_an_error() -> None:
    with pytest.raises(AnsweringError, match="token counter"):
        build_prompt([], "q", "", OWNER, ReadingPlan("m", 64), lambda texts: [1])


@given(st.text(st.characters(exclude_categories=())))
def test_count_by_bytes_is_a_quarter_of_the_bytes_rounded_up(text: str) -> None:
    assert count_by_bytes([text]) == [-(-len(text.encode("utf-8", "surrogatepass")) // 4)]
