"""Tests phrases/grammar.py: how rules of bank files expand, and how faults in a file are reported."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.values.generous import dates_in
from memarena_masim.errors import MasimError
from memarena_masim.facts.values import ValueKind, day_words
from memarena_masim.pack import PUBLIC
from memarena_masim.phrases.grammar import Bank, Scope, Voice, phrase, tidy, ways
from memarena_masim.phrases.inflect import inflect
from memarena_masim.phrases.library import library
from memarena_masim.rng import Stream

_CHOICE = re.compile(r"\{([^{}]*)\}")
_NUMBERS = {("is", "are"), ("was", "were"), ("has", "have"), ("does", "do")}
SLOTS = (
    *("you", "owner", "other", "lastday", "weekday", "daypart", "weather", "place", "thing"),
    *("e", "k", "topic", "source", "a", "q", "subject", "subject_you", "do", "did", "doing", "matter"),
)
"""Slots that the engine may bind for a line of the dialogue banks."""


def scope(seed: int = 0, **slots: str) -> Scope:
    return Scope(Stream(seed), Voice(1), slots)


@pytest.mark.parametrize(
    ("verb", "past", "ing"),
    [
        ("stop", "stopped", "stopping"),
        ("bake", "baked", "baking"),
        ("carry", "carried", "carrying"),
        ("play", "played", "playing"),
        ("get", "got", "getting"),
        ("lie", "lay", "lying"),
        ("water", "watered", "watering"),
    ],
)
def test_verbs_are_inflected(verb: str, past: str, ing: str) -> None:
    """Regular, doubling, -e, -y and irregular verbs."""
    assert (inflect(verb, "base"), inflect(verb, "past"), inflect(verb, "ing")) == (verb, past, ing)


def test_all_branches_of_a_choice_are_reached() -> None:
    """Choices and optional parts, nested."""
    bank = Bank()
    sequence = bank.compile("{a|b [c]} $x", "test")
    texts = {phrase(sequence, scope(seed, x="z")) for seed in range(60)}
    assert texts == {"a z", "b z", "b c z"}
    assert ways(sequence) == 3


def test_a_speaker_leans_towards_the_same_branch() -> None:
    """More often than chance would, and not always."""
    sequence = Bank().compile("{a|b|c|d}", "test")
    text_counts = Counter(phrase(sequence, Scope(Stream(seed), Voice(7), {})) for seed in range(400))
    most = text_counts.most_common(1)[0][1]
    assert len(text_counts) == 4
    assert 150 < most < 250


@pytest.mark.parametrize("line", ["{a|b", "a}", "a | b", "[a}", "{a]"])
def test_a_fault_names_file_and_line(line: str, tmp_path: Path) -> None:
    """Unbalanced brackets are reported when the file is read."""
    path = tmp_path / "bad.bank"
    path.write_text(f"== rule\nfine\n{line}\n")
    with pytest.raises(MasimError, match=r"bad\.bank:3"):
        Bank().read(path)


def test_a_reference_to_an_undefined_rule_is_reported(tmp_path: Path) -> None:
    """With its file and line."""
    path = tmp_path / "bad.bank"
    path.write_text("== rule\nsay <nothing>\n")
    bank = Bank()
    bank.read(path)
    with pytest.raises(MasimError, match=r"bad\.bank:2: <nothing>"):
        bank.link()


@given(st.text(alphabet="ab ,.?;", max_size=40))
def test_tidy_is_idempotent(text: str) -> None:
    """Tidying a tidy text changes nothing."""
    once = tidy(text)
    assert tidy(once) == once


def test_articles_follow_the_next_word() -> None:
    """``a`` and ``an`` are chosen after the words are."""
    assert tidy("a old hat, an hour, an unit, a honest man") == "an old hat, an hour, a unit, an honest man"


def test_every_rule_around_scenes_expands() -> None:
    """Each alternative expands without a missing slot."""
    slots = dict.fromkeys(SLOTS, "xx")
    for number, rule in enumerate(library().frame.rules.values()):
        for index, alternative in enumerate(rule.alternatives):
            spoken = phrase(alternative, Scope(Stream(number, index), Voice(3), slots))
            assert not set(spoken) & set("{}[]|<>$@^"), (rule.name, spoken)


def third(verb: str) -> str:
    """The form of a regular verb that goes with ``she``."""
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"


def test_no_choice_offers_a_verb_in_both_numbers() -> None:
    """``{stairs|the kerb} {is|are}`` says "stairs is" in a quarter of all cases: the number goes with the subject."""
    paths = [path for path in sorted(PUBLIC.rglob("*")) if path.suffix in (".toml", ".bank")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    verbs = {verb for text in texts.values() for verb in re.findall(r"\^([a-z]+)", text)}
    both = _NUMBERS | {(third(verb), verb) for verb in verbs}
    assert len(verbs) > 90
    faults = []
    for name, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for match in _CHOICE.finditer(line):
                branches = [branch.strip(" *,") for branch in match.group(1).split("|")]
                if any((first, second) in both for first in branches for second in branches):
                    faults.append(f"{name}:{number}: {match.group()}")
    assert faults == []


def test_verbs_of_the_banks_double_their_last_letter() -> None:
    """A short verb on one vowel and one consonant ("hug") is listed as irregular or as doubled, never "huged"."""
    short = re.compile(r"[^aeiou]*[aeiou][bdgklmnprt]")
    texts = [path.read_text(encoding="utf-8") for path in sorted(PUBLIC.rglob("*")) if path.is_file()]
    verbs = {verb for text in texts for verb in re.findall(r"\^([a-z]+)", text)}
    past = {verb: inflect(verb, "past") for verb in verbs if short.fullmatch(verb)}
    assert len(past) > 5
    assert [verb for verb, form in past.items() if form == f"{verb}ed"] == []


def test_day_words_can_be_read_as_their_day() -> None:
    """For days up to five weeks ago."""
    today = date(2025, 1, 3)
    day_wordings = {back: day_words(today, today - timedelta(days=back)) for back in range(35)}
    assert [day_wordings[back] for back in (0, 1, 3, 7, 10, 21)] == [
        "today", "yesterday", "on Tuesday", "a week ago to the day", "ten days ago", "three weeks ago to the day",
    ]  # fmt: skip
    assert all(today - timedelta(days=back) in dates_in(words, today) for back, words in day_wordings.items())


def test_clock_times_may_be_a_range() -> None:
    """``low..high step n`` of times steps in minutes."""
    kind = ValueKind.parse("time", "", "07:50..08:10 step 10", "here")
    texts = {kind.draw(Stream("times", number), date(2025, 1, 1)).text for number in range(60)}
    assert texts == {"7:50 am", "8:00 am", "8:10 am"}
