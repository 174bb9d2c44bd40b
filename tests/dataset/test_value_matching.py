"""Tests whether a text states a value, as read on the day of the text (Thursday, 6 March 2025)."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.values import Value
from memarena_dataset.values.generous import dates_in, explicit_dates_in, lengths_in, numbers_in, times_in
from memarena_dataset.values.phrases import normal, phrase_occurs
from memarena_dataset.values.possible import Passage, names_value, states
from pydantic import TypeAdapter

THURSDAY = date(2025, 3, 6)
VALUE: TypeAdapter[Value] = TypeAdapter(Value)

ADA_AND_BO = {"type": "set", "members": [{"type": "name", "name": "Ada"}, {"type": "name", "name": "Bo"}]}
WASH_AND_SEW = {"type": "order", "items": [{"type": "term", "text": "wash"}, {"type": "term", "text": "sew"}]}

STATED: list[tuple[dict[str, Any], str]] = [
    ({"type": "term", "text": "plum jam"}, "One jar of your mother's PLUM jam, please."),
    ({"type": "term", "text": "the red scarf"}, "He wore a red scarf."),
    ({"type": "term", "text": "violin", "aliases": ["fiddle"]}, "She plays the fiddle."),
    ({"type": "term", "text": "solo"}, "She calls it her 'solo'."),
    ({"type": "name", "name": "Ada"}, "It was Ada’s idea."),
    ({"type": "term", "text": "R. A. V."}, "The lid says R.A.V. in curly letters."),
    ({"type": "name", "name": "Leila Haddad"}, "Ask Leila."),
    ({"type": "place", "name": "Café Marlow"}, "We met at Cafe Marlow."),
    ({"type": "amount", "amount": 640, "unit": "euros"}, "They pay six hundred and forty euros."),
    ({"type": "amount", "amount": 1250.5}, "It cost 1,250.50 in all."),
    ({"type": "amount", "amount": 24}, "Twenty-four, and no."),
    ({"type": "amount", "amount": 500_000}, "They paid half a million for it."),
    ({"type": "amount", "amount": 2_500_000}, "It was 2½ million in all."),
    ({"type": "amount", "amount": 3}, "It was 3 million in all."),
    ({"type": "time", "time": "19:30"}, "It starts at half past seven."),
    ({"type": "time", "time": "18:30"}, "See you at 6:30 pm."),
    ({"type": "time", "time": "05:45"}, "I got up at a quarter to six."),
    ({"type": "time", "time": "19:00"}, "We begin at seven tonight."),
    ({"type": "time", "time": "12:00"}, "Let us eat at noon."),
    ({"type": "time", "time": "07:00"}, "The kettle is on, seven o'clock it is."),
    ({"type": "date", "date": "2025-03-21"}, "I hand it over on the twenty-first of March."),
    ({"type": "date", "date": "2025-03-15"}, "The fair is on Saturday the fifteenth."),
    ({"type": "date", "date": "2025-03-07"}, "I will do it tomorrow."),
    ({"type": "date", "date": "2025-03-05"}, "It broke yesterday."),
    ({"type": "date", "date": "2025-03-11"}, "They promise it for next Tuesday."),
    ({"type": "date", "date": "2025-03-20"}, "In two weeks, then."),
    ({"type": "date", "date": "2025-03-06"}, "I just signed the lease."),
    ({"type": "date", "date": "2024-12-24"}, "On 24 December we sang."),
    ({"type": "date", "date": "2025-04"}, "Some time in April, I think."),
    ({"type": "date", "date": "2016"}, "I have lived here since 2016."),
    ({"type": "weekday", "weekday": "friday"}, "He is easier on Fridays: come Friday."),
    ({"type": "weekday", "weekday": "friday"}, "Come tomorrow."),
    ({"type": "duration", "days": 21}, "It took three weeks."),
    ({"type": "duration", "days": 0.0625}, "It took 90 minutes."),
    ({"type": "duration", "days": 15}, "From today until the twenty-first of March."),
    (
        {"type": "set", "members": [{"type": "name", "name": "Ada"}, {"type": "name", "name": "Bo"}]},
        "Bo came with Ada.",
    ),
    (
        {"type": "order", "items": [{"type": "term", "text": "wash"}, {"type": "term", "text": "sew"}]},
        "Wash, then sew.",
    ),
]

NOT_STATED: list[tuple[dict[str, Any], str]] = [
    ({"type": "term", "text": "plum jam"}, "A plum, and some jam."),
    ({"type": "term", "text": "cat"}, "The category is open."),
    ({"type": "amount", "amount": 64}, "They pay six hundred and forty euros."),
    ({"type": "amount", "amount": 24}, "It was in 1924, at 2:45."),
    ({"type": "amount", "amount": 1_000_000}, "They paid half a million for it."),
    ({"type": "time", "time": "19:30"}, "It starts at seven."),
    ({"type": "time", "time": "18:30"}, "See you at 6:30 am."),
    ({"type": "date", "date": "2025-03-21"}, "I hand it over on the twentieth of March."),
    ({"type": "date", "date": "2025-03-09"}, "I will do it tomorrow."),
    ({"type": "weekday", "weekday": "monday"}, "Come tomorrow."),
    ({"type": "duration", "days": 21}, "It took four weeks."),
    (ADA_AND_BO, "Bo came alone."),
    (WASH_AND_SEW, "Just wash it."),
    ({"type": "time", "time": "10:00"}, "The bus goes at 6:10 am."),
]


@pytest.mark.parametrize(("value", "text"), STATED)
def test_a_value_is_recognised_in_everyday_wording(value: dict[str, Any], text: str) -> None:
    assert states(VALUE.validate_python(value), [Passage(text, THURSDAY)])


@pytest.mark.parametrize(("value", "text"), NOT_STATED)
def test_another_value_is_not_recognised(value: dict[str, Any], text: str) -> None:
    assert not states(VALUE.validate_python(value), [Passage(text, THURSDAY)])


def test_a_duration_may_lie_between_two_passages() -> None:
    nine_days = VALUE.validate_python({"type": "duration", "days": 9})
    passages = [Passage("It comes next Tuesday.", THURSDAY), Passage("They sail on the twentieth of March.", THURSDAY)]
    assert states(nine_days, passages)


@pytest.mark.parametrize(
    ("value", "text", "is_given"),
    [
        ({"type": "date", "date": "2025-03-06"}, "What happened on Thursday?", False),
        ({"type": "date", "date": "2025-03-06"}, "What happened on 6 March?", True),
        ({"type": "weekday", "weekday": "thursday"}, "What happened on Thursday?", True),
        ({"type": "weekday", "weekday": "thursday"}, "What happened today?", False),
        ({"type": "duration", "days": 9}, "How many days lie between the 11th and the 20th of March?", False),
        ({"type": "order", "items": [{"type": "term", "text": "wash"}]}, "In which order: sew, wash?", False),
        ({"type": "term", "text": "solo"}, "Will she sing the solo?", True),
    ],
)
def test_a_question_reveals_only_explicit_values(value: dict[str, Any], text: str, is_given: bool) -> None:
    assert names_value(VALUE.validate_python(value), text, THURSDAY) is is_given


@given(st.integers(0, 999_999))
def test_numbers_are_read_in_digits_with_and_without_separators(number: int) -> None:
    assert float(number) in numbers_in(f"about {number} of them")
    assert float(number) in numbers_in(f"about {number:,} of them")


SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]  # fmt: skip
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spell(number: int) -> str:
    if number < 20:
        return SMALL[number]
    if number < 100:
        return TENS[number // 10] + (f"-{SMALL[number % 10]}" if number % 10 else "")
    if number < 1000:
        return f"{SMALL[number // 100]} hundred" + (f" and {spell(number % 100)}" if number % 100 else "")
    rest = number % 1000
    joined = f" and {spell(rest)}" if 0 < rest < 100 else f" {spell(rest)}" if rest else ""
    return f"{spell(number // 1000)} thousand{joined}"


@given(st.integers(0, 999_999))
def test_numbers_are_read_in_words(number: int) -> None:
    assert numbers_in(f"They were {spell(number)}, all told") == {float(number)}


@given(st.dates(date(1990, 1, 1), date(2060, 12, 31)), st.dates(date(1990, 1, 1), date(2060, 12, 31)))
def test_a_full_date_is_read_in_every_usual_form(day: date, said_on: date) -> None:
    month = day.strftime("%B")
    forms = [day.isoformat(), f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}"]
    forms.append(f"the {day.day}th of {month} {day.year}")
    for form in forms:
        assert explicit_dates_in(f"It was on {form}.", said_on) == {day}
        assert day in dates_in(f"It was on {form}.", said_on)


@given(st.integers(0, 23), st.integers(0, 59))
def test_a_clock_time_is_read_in_digits(hour: int, minute: int) -> None:
    assert hour * 60 + minute in times_in(f"at {hour:02d}:{minute:02d}")
    half = "am" if hour < 12 else "pm"
    assert times_in(f"at {(hour - 1) % 12 + 1}:{minute:02d} {half}") == {hour * 60 + minute}


def test_durations_are_in_days() -> None:
    days_by_text = {
        "two days; an hour; half an hour": [2, 1 / 24, 0.5 / 24],
        "one week plus four days": [11],
        "a week and four days": [11],
        "2 weeks, 3 days": [17],
        "an hour and a half": [1.5 / 24],
        "44 minutes and 21 minutes": [44 / 1440, 21 / 1440],
    }
    assert {text: [length.days for length in lengths_in(text)] for text in days_by_text} == {
        text: pytest.approx(days) for text, days in days_by_text.items()
    }


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_phrase_occurs_in_a_text_that_holds_it(before: str, after: str) -> None:
    assert phrase_occurs("red kite", normal(f"{before} Red-Kite! {after}"))


@given(st.text(max_size=60))
def test_no_text_raises_an_error(text: str) -> None:
    numbers_in(text)
    times_in(text)
    lengths_in(text)
    dates_in(text, THURSDAY)
