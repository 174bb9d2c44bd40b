"""Tests how the extractive reader splits and compares words and sentences, and its data files."""

from __future__ import annotations

from importlib.resources import files

import pytest
from memarena.readers.extractive_words import content_words, data_files, lexicon, sentences, setting_of, stem, synonyms
from memarena_answering import ContextItem


@pytest.mark.parametrize(
    "forms", [("buy", "bought", "buying", "buys"), ("plan", "planned", "planning", "plans"), ("city", "cities"),
              ("bake", "baked", "baking"), ("box", "boxes"), ("walk", "walked"), ("child", "children")]
)  # fmt: skip
def test_forms_of_a_word_meet(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_function_words_carry_nothing() -> None:
    assert content_words("What is it that they were doing with the?") == frozenset()


@pytest.mark.parametrize(
    ("word", "other"),
    [("physician", "doctor"), ("spectacles", "glasses"), ("wedding", "marriage"), ("drapes", "curtains")],
)
def test_synonyms_go_both_ways(word: str, other: str) -> None:
    assert stem(other) in synonyms()[stem(word)]
    assert stem(word) in synonyms()[stem(other)]


def test_sentences_keep_their_speaker_and_their_marks() -> None:
    parsed = list(
        sentences([ContextItem('Ana: One. Two? "Three!" Four\nno speaker\n東京。大阪。'), ContextItem("Five.")])
    )
    assert [sentence.text for sentence in parsed] == [
        "One.",
        "Two?",
        '"Three!',
        "Four",
        "no speaker",
        "東京。",
        "大阪。",
        "Five.",
    ]
    assert [sentence.speaker for sentence in parsed] == ["Ana"] * 4 + [""] * 4
    assert [sentence.item for sentence in parsed] == [0] * 7 + [1]


def test_titles_do_not_end_a_sentence() -> None:
    assert [sentence.text for sentence in sentences([ContextItem("Dr. Hollis sees to it. Good.")])] == [
        "Dr. Hollis sees to it.",
        "Good.",
    ]


def test_patterns_of_the_lexicon_hold_no_control_characters() -> None:
    """A backslash in the wrong sort of TOML string turns a word boundary into a backspace, which never matches."""
    words = lexicon()
    patterns = [*words.patterns.values(), *(pattern for _, pattern in words.kinds)]
    assert not [each.pattern for each in patterns if any(ord(char) < 32 for char in each.pattern)]


def test_the_lexicons_are_named_with_their_hashes_and_are_small() -> None:
    hashes = data_files()
    names = ["lexicons/extractive.v1.toml", "lexicons/synonyms.v1.txt.gz"]
    assert sorted(hashes) == [f"memarena/readers/{name}" for name in names]
    assert all(len(digest) == 64 for digest in hashes.values())
    assert sum(len(files("memarena.readers").joinpath(name).read_bytes()) for name in names) <= 100_000


def test_the_setting_of_an_item_is_no_sentence() -> None:
    item = ContextItem("[face to face, at Luna Café]\nAna: Hi.")
    assert setting_of(item) == ("face to face", "at Luna Café")
    assert [sentence.text for sentence in sentences([item])] == ["Hi."]
