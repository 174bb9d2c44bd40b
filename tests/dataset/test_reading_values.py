"""Tests reading values in text: numbers, dates, times, durations, amounts and names in everyday wording."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.values.mentions import (
    AmountMention,
    DateMention,
    DurationMention,
    ProperMention,
    TimeMention,
    WeekdayMention,
)
from memarena_dataset.values.numbers import digits_for_words
from memarena_dataset.values.reading import read_text
from memarena_dataset.values.words import bag_f1, clauses, squad_tokens, tidy, token_f1

TODAY = date(2023, 6, 15)
SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety"


def spoken(number: int) -> str:
    """Return a number below a million in words."""
    if number < 20:
        return SMALL.split()[number]
    if number < 100:
        return TENS.split()[number // 10] + (f"-{spoken(number % 10)}" if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = number % size
    joint = " and " if rest and (size == 100 or rest < 100) else " "
    return f"{spoken(number // size)} {name}" + (f"{joint}{spoken(rest)}" if rest else "")


@given(st.integers(2, 999_999))
def test_a_number_in_words_becomes_its_digits(number: int) -> None:
    assert digits_for_words(f"exactly {spoken(number)} of them") == f"exactly {number} of them"


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("four eight two one", "4 8 2 1"),
        ("forty-eight twenty-one", "48 21"),
        ("nineteen eighty-four", "1984"),
        ("the red one", "the red one"),
        ("one day", "1 day"),
        ("half a dozen eggs", "6 eggs"),
        ("a couple of weeks", "2 weeks"),
        ("two and three", "2 and 3"),
        ("someone", "someone"),
    ],
)
def test_numbers_keep_their_boundaries(words: str, digits: str) -> None:
    assert digits_for_words(words) == digits


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("half a million", "500000"),
        ("half a thousand", "500"),
        ("half a hundred", "50"),
        ("half a billion", "500000000"),
        ("half a hundred thousand", "50000"),
        ("half of a million", "500000"),
        ("half million euros", "500000 euros"),
        ("a half million", "500000"),
        ("one half million", "500000"),
        ("half-a-million", "500000"),
        ("a half-million-dollar house", "500000-dollar house"),
        ("half dozen eggs", "6 eggs"),
        ("a quarter of a million", "250000"),
        ("a quarter million", "250000"),
        ("quarter million", "250000"),
        ("three quarters of a million", "750000"),
        ("three-quarters of a million", "750000"),
        ("one and a half million", "1500000"),
        ("one-and-a-half million", "1500000"),
        ("two and half million", "2500000"),
        ("two and a quarter million", "2250000"),
        ("two and three quarters million", "2750000"),
        ("two and a half hundred", "250"),
        ("one and a half dozen eggs", "18 eggs"),
        ("a million and a half", "1500000"),
        ("two million and a half euros", "2500000 euros"),
        ("a dozen and a half eggs", "18 eggs"),
        ("2 and a half thousand", "2500"),
        ("2.5 thousand", "2500"),
        ("2,5 million", "2500000"),
        ("$3 million", "$3000000"),
        ("1,200 thousand", "1200000"),
        ("3-million-euro house", "3000000-euro house"),
        ("2 million 300 thousand", "2300000"),
        ("half a million and two hundred thousand", "700000"),
        ("a couple of hundred euros", "200 euros"),
    ],
)
def test_shares_and_digits_of_a_size_are_one_number(words: str, digits: str) -> None:
    assert digits_for_words(words) == digits


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("one million and two million", "1000000 and 2000000"),
        ("one million and two hundred thousand", "1200000"),
        ("one and a half million and two million", "1500000 and 2000000"),
        ("two and half a million", "2 and 500000"),
        ("two dozen and a half dozen eggs", "24 and 6 eggs"),
        ("two hundred and a half million", "200500000"),
        ("a dozen and a quarter of them burnt", "12 and a quarter of them burnt"),
        ("a dozen and a half-eaten roll", "12 and a half-eaten roll"),
        ("in 2023 thousand people came", "in 2023 1000 people came"),
        ("2-and-a-half million", "2500000"),
        ("0,250 million", "250000"),
        ("five and half a dozen", "5 and 6"),
        ("a thousand and a half million", "1000 and 500000"),
        ("two half-million-dollar houses", "2 500000-dollar houses"),
        ("item 5\nthousand", "item 5\n1000"),
        ("half the million", "half the 1000000"),
        ("in the last quarter a million came", "in the last quarter 1000000 came"),
        ("half an hour", "half an hour"),
        ("half past two", "half past 2"),
        ("half of them", "half of them"),
        ("one and a half", "one and a half"),
    ],
)
def test_a_share_of_no_size_and_two_numbers_stay_apart(words: str, digits: str) -> None:
    assert digits_for_words(words) == digits


def dates_in(text: str) -> list[set[str]]:
    mentions = [m for m in read_text(text, TODAY).mentions if isinstance(m, DateMention)]
    return [{f"{r.year}-{r.month}-{r.day}{' ' + r.around if r.around else ''}" for r in m.readings} for m in mentions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 May 2023", [{"2023-5-7"}]),
        ("on the 7th of May", [{"None-5-7"}]),
        ("May 7th, 2023", [{"2023-5-7"}]),
        ("7/5/2023", [{"2023-5-7", "2023-7-5"}]),
        ("2023-05-07T10:00:00Z", [{"2023-5-7"}]),
        ("June 2023", [{"2023-6-None"}]),
        ("in 2022", [{"2022-None-None"}]),
        ("9October, 2022", [{"2022-10-9"}]),
        ("April.2023", [{"2023-4-None"}]),
        ("the weekend of 22August, 2022", [{"2022-8-22 weekend of"}]),
        ("yesterday", [{"2023-6-14"}]),
        ("two weeks ago", [{"2023-6-1"}]),
        ("last Tuesday", [{"2023-6-13", "2023-6-6"}]),
        ("next Friday", [{"2023-6-16", "2023-6-23"}]),
        ("last month", [{"2023-5-None"}]),
        ("the Sunday before 25 May 2023", [{"2023-5-21"}]),
        ("the day after 31 May 2023", [{"2023-6-1"}]),
        ("the week before 9 June 2023", [{"2023-6-9 week before"}]),
        ("I may go in march", []),
        ("2000 euros", []),
        ("32 May 2023", [{"2023-5-None"}]),
    ],
)
def test_dates_are_read_in_their_usual_forms(text: str, expected: list[set[str]]) -> None:
    assert dates_in(text) == expected


def test_relative_dates_need_a_reference_day() -> None:
    assert not [m for m in read_text("yesterday, two weeks ago").mentions if isinstance(m, DateMention)]


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("3 p.m.", {900}),
        ("15:30", {930}),
        ("3:15", {195, 915}),
        ("03:10", {190}),
        ("half past three", {210, 930}),
        ("quarter to nine in the evening", {1245}),
        ("ten to four", {230, 950}),
        ("noon", {720}),
        ("midnight", {0}),
        ("at seven", {420, 1140}),
        ("12 am", {0}),
        ("12:30 pm", {750}),
    ],
)
def test_times_are_read_with_every_possible_meaning(text: str, minutes: set[int]) -> None:
    (mention,) = [m for m in read_text(text).mentions if isinstance(m, TimeMention)]
    assert mention.minutes == minutes


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("two and a half hours", 2.5 / 24),
        ("an hour and a half", 1.5 / 24),
        ("half an hour", 0.5 / 24),
        ("one and a half hours", 1.5 / 24),
        ("two-and-a-half-hour", 2.5 / 24),
        ("2½ hours", 2.5 / 24),
        ("½ hour", 0.5 / 24),
        ("1 hour and 30 minutes", 1.5 / 24),
        ("for a week", 7),
        ("three weeks", 21),
        ("10-day", 10),
    ],
)
def test_durations_are_read_in_days(text: str, days: float) -> None:
    (mention,) = [m for m in read_text(text).mentions if isinstance(m, DurationMention)]
    assert mention.days == pytest.approx(days)


def test_a_week_in_a_frequency_is_no_duration() -> None:
    assert not [m for m in read_text("She swims twice a week.").mentions if isinstance(m, DurationMention)]


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("2,000 euros", [(2000, "euro")]),
        ("$15.50", [(15.5, "dollar")]),
        ("3k", [(3000, None)]),
        ("3 million euros", [(3_000_000, "euro")]),
        ("half a million euros", [(500_000, "euro")]),
        ("2½ million", [(2_500_000, None)]),
        ("two and a half kilos", [(2.5, "kilogram")]),
        ("one and a half kilos", [(1.5, "kilogram")]),
        ("two and a half of them", [(2, None)]),
        ("€ 50 and 12 dogs", [(50, "euro"), (12, "dog")]),
        ("room 12", [(12, None)]),
        ("7 May 2023 at 3 pm for 2 hours", []),
        ("the 3rd", []),
    ],
)
def test_amounts_are_numbers_that_are_not_dates(text: str, amounts: list[tuple[float, str | None]]) -> None:
    mentions = [m for m in read_text(text).mentions if isinstance(m, AmountMention)]
    assert [(m.amount, m.unit) for m in mentions] == amounts


def test_names_are_capitalised_words_not_merely_at_the_start_of_a_sentence() -> None:
    mentions = read_text("Yesterday Maya Chen met Dr. Ray in Porto. The clinic is new. Bob's idea.").mentions
    assert [m.name for m in mentions if isinstance(m, ProperMention)] == [
        ("maya", "chen"),
        ("ray",),
        ("porto",),
        ("bob",),
    ]


def test_a_weekday_inside_a_date_is_not_a_separate_mention() -> None:
    mentions = [m for m in read_text("Tuesday, 14 January, or Friday").mentions if isinstance(m, WeekdayMention)]
    assert [m.weekday for m in mentions] == [4]


def test_clauses_end_at_sentences_commas_and_contrasts_but_not_within_numbers() -> None:
    text = tidy("It cost 1,200 euros at 3 p.m. on Tuesday, but Dr. Ray paid — so she left. Really?")
    assert [c.text for c in clauses(text)] == [
        "It cost 1,200 euros at 3 p.m. on Tuesday",
        "but Dr. Ray paid",
        "so she left",
        "Really",
    ]


# ------------------------------------------------------------------ token-F1


@pytest.mark.parametrize(
    ("prediction", "gold", "f1"),
    [
        ("the Sweden", "Sweden", 1.0),
        ("pottery, camping", "camping and pottery!", 0.8),
        ("", "Sweden", 0.0),
        ("", "", 1.0),
        ("a b b", "b b c", 0.8),
    ],
)
def test_token_f1_is_that_of_squad(prediction: str, gold: str, f1: float) -> None:
    assert token_f1(prediction, gold) == pytest.approx(f1)


@given(st.text(max_size=80), st.text(max_size=80))
def test_token_f1_is_symmetric_bounded_and_one_for_equals(left: str, right: str) -> None:
    assert token_f1(left, right) == token_f1(right, left)
    assert 0.0 <= token_f1(left, right) <= 1.0
    assert token_f1(left, left) == 1.0
    assert squad_tokens(" ".join(squad_tokens(left))) == squad_tokens(left)


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_f1_is_one_exactly_for_equal_bags(left: list[str], right: list[str]) -> None:
    assert (bag_f1(left, right) == 1.0) is (sorted(left) == sorted(right))
