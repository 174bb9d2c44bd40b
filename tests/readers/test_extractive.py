"""The extractive reader's choice of a sentence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.readers import data_files
from memarena.readers.extractive import UNKNOWN, answer, content_words, options, read, sentences, stem
from memarena_answering import (
    Asker,
    ContextItem,
    Message,
    PromptParts,
    PromptStyle,
    ReadingPlan,
    build_prompt,
    count_by_bytes,
    parse_answer,
)

ITEMS = (
    ContextItem("Ana: We met Bo in Porto last week.\nBo: I bought a red kayak. It was cheap!", "2025-01-06"),
    ContextItem("Cy: Do you know when the concert starts?\nAna: The concert starts at 20:30.\nCy: Fine."),
)


def ask(question: str, items: tuple[ContextItem, ...] = ITEMS) -> str:
    return answer(PromptParts(items, question, "", "")).answer


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Bo buy?", "Bo: I bought a red kayak."),
        ("Where did they meet Bo?", "Ana: We met Bo in Porto last week."),
        ("When does the concert start?", "Ana: The concert starts at 20:30."),
        ("Who plays the zither?", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_best_sentence_is_given_with_its_speaker(question: str, expected: str) -> None:
    assert ask(question) == expected


def test_an_empty_context_knows_nothing() -> None:
    assert ask("What did Bo buy?", ()) == UNKNOWN


@pytest.mark.parametrize(
    "shown",
    [
        "A) Paris\nB) Porto\nC) Rome",
        "(A) Paris (B) Porto (C) Rome",
        "A. Paris B. Porto C. Rome",
        "A: Paris, B: Porto, C: Rome",
        "Options:\n[A] Paris\n[B] Porto\n[C] Rome",
    ],
)
def test_of_lettered_options_the_best_supported_letter_is_given(shown: str) -> None:
    assert ask(f"Where did they meet Bo?\n{shown}") == "B"


def test_options_that_nothing_supports_are_not_guessed() -> None:
    assert ask("Where did they meet Bo?\nA) Paris\nB) Rome") == UNKNOWN


def test_the_option_near_the_question_wins_over_one_that_is_merely_mentioned() -> None:
    items = (ContextItem("Ana: Rome is nice.\nAna: Rome again.\nAna: Bo lost his blue kayak in Porto."),)
    assert ask("Bo lost his blue kayak in ____.\nA) Rome\nB) Porto", items) == "B"


def test_options_are_taken_off_the_question() -> None:
    assert options("Which?\nA) x y\nB) z") == ("Which?\n", {"A": "x y", "B": "z"})
    assert options("Is plan A. good? I. e. now.") == ("Is plan A. good? I. e. now.", {})


@pytest.mark.parametrize(
    "forms", [("buy", "bought", "buying", "buys"), ("plan", "planned", "planning", "plans"), ("city", "cities"),
              ("bake", "baked", "baking"), ("box", "boxes"), ("walk", "walked"), ("child", "children")]
)  # fmt: skip
def test_forms_of_a_word_meet(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_function_words_carry_nothing() -> None:
    assert content_words("What is it that they were doing with the?") == frozenset()


def test_sentences_keep_their_speaker_and_their_marks() -> None:
    found = [
        each.text for each in sentences([ContextItem('Ana: One. Two? "Three!" Four\nno speaker here\n東京。大阪。')])
    ]
    assert found == ["Ana: One.", "Ana: Two?", 'Ana: "Three!"', "Ana: Four", "no speaker here", "東京。", "大阪。"]


@pytest.mark.parametrize("style", list(PromptStyle))
@pytest.mark.parametrize("no_system_role", [False, True])
def test_our_own_prompts_are_read_in_every_form(style: PromptStyle, no_system_role: bool) -> None:
    plan = ReadingPlan("m", 64, style=style, no_system_role=no_system_role)
    prompt = build_prompt(ITEMS, "What did Bo buy?", "2025-01-07", Asker("owner"), plan, count_by_bytes)
    parsed = parse_answer(answer(read(prompt.messages)).as_json())
    assert (parsed.answer, parsed.parse) == ("Bo: I bought a red kayak.", "json")
    assert "red kayak" in parsed.reason


def test_prompts_of_others_are_read_by_their_last_question() -> None:
    text = "Here is what we know.\nBo bought a red kayak.\nWhat did Bo buy?\nReply briefly."
    assert answer(read([Message("system", "Be kind?"), Message("user", text)])).answer == "Bo bought a red kayak."
    assert answer(read([])).answer == UNKNOWN


@given(texts=st.lists(st.text(), max_size=5), question=st.text())
def test_any_text_gives_the_same_answer_twice_and_it_stands_in_the_context(texts: list[str], question: str) -> None:
    items = tuple(ContextItem(text) for text in texts)
    first = answer(PromptParts(items, question, "", ""))
    assert first == answer(PromptParts(items, question, "", ""))
    assert json.loads(first.as_json())["answer"] == first.answer
    allowed = {each.text for each in sentences(items)} | {UNKNOWN} | set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert first.answer in allowed


def test_the_lexicons_are_named_with_their_hashes() -> None:
    hashes = data_files()
    assert sorted(hashes) == [
        "memarena/readers/lexicons/irregular.v1.txt",
        "memarena/readers/lexicons/stopwords.v1.txt",
    ]
    assert all(len(digest) == 64 for digest in hashes.values())
