"""Finds numbers with their units in a text whose numbers are digits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from memarena_dataset.values.mentions import AmountMention
from memarena_dataset.values.word_lists import table
from memarena_dataset.values.words import stem

_NUMBER = re.compile(
    r"(?P<before>[$€£¥]\s?)?(?<![\w.])(?<!\d[:/-])"
    r"(?P<number>\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?"
    r"|\d+(?:[.,]\d+)?)"
    r"(?P<half>[\s-]+and[\s-]+a[\s-]+half\b(?!\s+of\b|-(?:price|baked|hearted|eaten|term|time|way)))?"
    r"(?P<factor>\s?(?:k|m|bn)(?!\w))?(?![\d:/]|-\d|(?:st|nd|rd|th)\b)"
    r"(?:(?:[^\S\n]|-)?(?P<unit>[%€$£¥°]|[a-z][a-z-]*))?",
    re.IGNORECASE,
)
"""A number with the sign of money before it, ``and a half``, a factor (``2k``) and the unit after it.

It may have separators of thousands (``1,240``, ``1.240,50``). Parts of dates, times and ordinals do not match.
"""
_GRAMMAR = """
a an the and or of in on at to for from by with is was are were but so as not than per if that this it he she i
"""
_NOT_UNITS = frozenset(_GRAMMAR.split())
"""Words after a number that are no unit: ``3 of them``."""
_MONEY = frozenset(("euro", "dollar", "pound", "yen", "franc"))
_MEASURES: tuple[dict[str | None, float], ...] = (
    {"kilometre": 1000.0, "metre": 1.0, "centimetre": 0.01, "mile": 1609.344, "foot": 0.3048, "inch": 0.0254},
    {"kilogram": 1000.0, "gram": 1.0, "weight_pound": 453.592, "pound_or_weight": 453.592},
)
"""Sizes of units of the same measure: metres, and grams. ``pound_or_weight``: pounds that may be money or weight."""
_FACTORS = {"k": 1e3, "m": 1e6, "bn": 1e9}


def amounts(text: str, apart_from: Iterable[tuple[int, int]]) -> list[AmountMention]:
    """Return the numbers outside of the spans ``apart_from`` (dates, times, durations), with the next word as unit."""
    spans = list(apart_from)
    amounts = []
    for match in _NUMBER.finditer(text):
        start, end = match.span("number")
        if any(start < e and s < end for s, e in spans):
            continue
        sign, word = match.group("before"), match.group("unit")
        unit = canonical_unit(sign.strip()) if sign else canonical_unit(word) if word else None
        factor = _FACTORS.get((match.group("factor") or "").strip().lower(), 1.0)
        stop = match.end() if unit is not None else max(match.end("number"), match.end("half"), match.end("factor"))
        number = _value(match.group("number"), money=unit in _MONEY) + (0.5 if match.group("half") else 0.0)
        amounts.append(AmountMention(match.start(), stop, number * factor, unit))
    return amounts


def canonical_unit(word: str) -> str | None:
    """Return the unit of a word or sign: a known unit's name, else the word's stem; None for a function word."""
    return _units().get(word.lower()) or (stem(word.lower()) if word.lower() not in _NOT_UNITS else None)


def is_known_unit(name: str) -> bool:
    """Whether a canonical unit is in the table of units; any other is only the word after a number."""
    return name in table("units.v1.txt")


def converted(amount: float, unit: str | None, other: str | None) -> float | None:
    """Convert an amount to another unit of the same measure; None if the units are equal or of other measures."""
    if unit == other:
        return None
    for sizes in _MEASURES:
        if unit in sizes and other in sizes:
            return amount * sizes[unit] / sizes[other]
    return None


@cache
def _units() -> dict[str, str]:
    return {form: name for name, forms in table("units.v1.txt").items() for form in forms}


def _value(digits: str, *, money: bool = False) -> float:
    # "1.240 euros" are 1240 euros, not 1.24.
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{1,2}", digits) or (money and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", digits)):
        return float(digits.replace(".", "").replace(",", "."))
    if re.fullmatch(r"\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?", digits):
        return float(re.sub(r"[,' ]", "", digits))
    return float(digits.replace(",", "."))
