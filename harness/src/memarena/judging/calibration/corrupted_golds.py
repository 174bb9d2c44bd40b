"""Makes wrong golds from right ones: yes and no exchanged, another weekday, month, year, number or name.

``framed_golds.py`` makes answers of them: near the gold and wrong, so that a judge must not accept them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from memarena_dataset.values.calendar import MONTHS, WEEKDAYS
from memarena_dataset.values.names import proper_names
from memarena_dataset.values.reading import read_text
from memarena_dataset.values.words import tidy

_YES_NO = re.compile(r"^(\W*(?:(?:likely|probably|most likely)\s+)?)(yes|no)\b", re.IGNORECASE)
_WEEKDAY = re.compile(rf"\b({'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b({'|'.join(month.title() for month in MONTHS)})\b")
"""Capitalised alone: "may" and "march" are verbs more often than months."""
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = re.compile(rf"(?<![\w.,:/-])(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?![\w:/])|\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.I)
_MAX_CHARACTERS = 160
"""Longest gold, in characters, that is corrupted: in a longer one a single detail hardly decides the verdict."""


def corrupted(
    text: str, alternatives: Sequence[str], names: Sequence[str], rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield each kind of corruption with the corrupted text; every detail of the kind is replaced by another.

    Args:
        text: the gold.
        alternatives: all right texts; a corrupted text that equals one of them is left out.
        names: names that replace those in the text.
        rng: draws the other details.
    """
    if len(text) > _MAX_CHARACTERS:
        return
    right = {_plain(right_text) for right_text in (text, *alternatives)}
    for kind, change in _CHANGES:
        other = change(text, rng, names)
        if other is not None and _plain(other) not in right:
            yield kind, other


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", read_text(text).text.casefold()))


def _replace_matches(text: str, pattern: re.Pattern[str], other: Callable[[str], str]) -> str | None:
    """Return the text with every match replaced; None without a match."""
    return (
        pattern.sub(lambda match: _match_case(match.group(), other(match.group())), text)
        if pattern.search(text)
        else None
    )


def _match_case(old: str, new: str) -> str:
    return new.capitalize() if old[:1].isupper() else new


def _yes_no(text: str, _rng: random.Random, _names: Sequence[str]) -> str | None:
    match = _YES_NO.match(text)
    if match is None:
        return None
    other = "no" if match.group(2).lower() == "yes" else "yes"
    # The rest explains the old word and would contradict the new one, so it is dropped.
    return match.group(1) + _match_case(match.group(2), other)


def _weekday(text: str, rng: random.Random, _names: Sequence[str]) -> str | None:
    # All weekdays by the same step, so that two of a text still differ.
    step = rng.randrange(1, 7)
    return _replace_matches(text, _WEEKDAY, lambda day: WEEKDAYS[(WEEKDAYS.index(day.lower()) + step) % 7])


def _month(text: str, rng: random.Random, _names: Sequence[str]) -> str | None:
    step = rng.randrange(1, 12)
    return _replace_matches(text, _MONTH, lambda month: MONTHS[(MONTHS.index(month.lower()) + step) % 12])


def _year(text: str, rng: random.Random, _names: Sequence[str]) -> str | None:
    step = rng.choice((-3, -2, -1, 1, 2, 3))
    return _replace_matches(text, _YEAR, lambda year: str(int(year) + step))


def _number(text: str, rng: random.Random, _names: Sequence[str]) -> str | None:
    """Return the text with every number but years raised by the same step; None without such a number."""
    step = rng.choice((1, 2, 3))

    def other(number: str) -> str:
        word = number.lower()
        if word in _NUMBER_WORDS:
            return _NUMBER_WORDS[(_NUMBER_WORDS.index(word) + step) % len(_NUMBER_WORDS)]
        value = int(number.replace(",", "")) + step
        return f"{value:,}" if "," in number else str(value)

    years = [match.span() for match in _YEAR.finditer(text)]
    numbers = [match for match in _NUMBER.finditer(text) if match.span() not in years]
    # From the last to the first, so that the offsets of the others stay right.
    for match in reversed(numbers):
        text = text[: match.start()] + _match_case(match.group(), other(match.group())) + text[match.end() :]
    return text if numbers else None


def _name(text: str, rng: random.Random, names: Sequence[str]) -> str | None:
    """Return the text with every name replaced by another; None if names are less than half of its words."""
    tidied = tidy(text)
    mentions = proper_names(tidied)
    name_words = sum(len(mention.name) for mention in mentions)
    others = rng.sample(list(names), min(len(mentions), len(names)))
    # Most of a list that has a name among other things would still be right.
    if len(others) < len(mentions) or 2 * name_words < len(tidied.split()):
        return None
    for mention, other in sorted(zip(mentions, others, strict=True), key=lambda pair: -pair[0].start):
        tidied = tidied[: mention.start] + other + tidied[mention.end :]
    return tidied


_CHANGES: tuple[tuple[str, Callable[[str, random.Random, Sequence[str]], str | None]], ...] = (
    ("yes or no", _yes_no),
    ("weekday", _weekday),
    ("month", _month),
    ("year", _year),
    ("number", _number),
    ("name", _name),
)
"""Kinds of corruption with the functions that return the corrupted text, or None if it has no such detail."""
