"""Numbers, lengths of time and clock times in running English, digits and words alike.

Generous on purpose: these readings decide whether a text *could* state a value (validate), never whether an answer is
right. An hour without morning or evening stands for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30,
}  # fmt: skip
_ORDINALS |= {
    f"{tens}-{unit}": base + value
    for tens, base in (("twenty", 20), ("thirty", 30))
    for unit, value in list(_ORDINALS.items())[:9]
    if base + value <= 31
}
ORDINAL_PATTERN = "|".join(sorted((word.replace("-", "[- ]") for word in _ORDINALS), key=len, reverse=True))

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[a-z]+")
_DAYS_OF_UNIT = {
    "minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "night": 1.0, "week": 7.0, "fortnight": 14.0, "month": 30.0,
    "year": 365.0,
}  # fmt: skip


def ordinal_of(word: str) -> int | None:
    """Day number of an ordinal word ("twenty-first", "twenty first"); None for any other word."""
    return _ORDINALS.get(word.lower().replace(" ", "-"))


def small_number(word: str) -> int | None:
    """Value of a number below 100 in digits or words ("7", "seven", "twenty-five"); None for any other word."""
    values = [value for value, _ in _numbers(word.lower())]
    return int(values[0]) if len(values) == 1 and values[0] < 100 else None


def numbers_in(text: str) -> frozenset[float]:
    """Every number in a text: "six hundred and forty", "1,250", "24", "a dozen"."""
    return frozenset(value for value, _ in _numbers(text.lower()))


def durations_in(text: str) -> frozenset[float]:
    """Every length of time in a text, in days: "three weeks", "90 minutes", "half an hour", "a year"."""
    lowered = text.lower()
    found: set[float] = set()
    for value, end in _numbers(lowered):
        unit = re.match(r"[\s-]+([a-z]+?)s?\b", lowered[end:])
        if unit and unit.group(1) in _DAYS_OF_UNIT:
            found.add(value * _DAYS_OF_UNIT[unit.group(1)])
    for match in re.finditer(r"\b(half )?(?:an?|one) ([a-z]+)\b", lowered):
        if match.group(2) in _DAYS_OF_UNIT:
            found.add(_DAYS_OF_UNIT[match.group(2)] * (0.5 if match.group(1) else 1.0))
    return frozenset(found)


def _numbers(lowered: str) -> Iterator[tuple[float, int]]:
    """Numbers with the position behind each one."""
    words = [(match.group(), match.start(), match.end()) for match in _WORD.finditer(lowered)]
    place = 0
    while place < len(words):
        word, _, end = words[place]
        if word[0].isdigit():
            yield _digits(word), end
            place += 1
        elif word in _UNITS or word in _TENS or word in _SCALES or word == "dozen":
            value, used = _spelled([entry[0] for entry in words[place : place + 12]])
            yield value, words[place + used - 1][2]
            place += used
        else:
            place += 1


def _digits(word: str) -> float:
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", word):
        return float(word.replace(",", ""))
    if re.fullmatch(r"\d+[.,]\d+", word):
        return float(word.replace(",", "."))
    return float(re.sub(r"[.,]", "", word))


def _spelled(words: list[str]) -> tuple[float, int]:
    """Value of the spelled number at the start of ``words``, and how many words it takes."""
    total, current, last, used = 0.0, 0.0, float("inf"), 0
    for position, word in enumerate(words):
        if word in _UNITS and (last >= 100 or (last == 20 and 0 < _UNITS[word] < 10)):
            current, last = current + _UNITS[word], 1
        elif word in _TENS and last >= 100:
            current, last = current + _TENS[word], 20
        elif word == "dozen":
            return total + max(current, 1) * 12, position + 1
        elif word == "hundred" and current < 100:
            current, last = max(current, 1) * 100, 100
        elif word in ("thousand", "million"):
            total, current, last = total + max(current, 1) * _SCALES[word], 0.0, 1_000
        elif word == "and" and last in (100, 1_000) and position + 1 < len(words):
            following = words[position + 1]
            if following not in _UNITS and following not in _TENS:
                break
            continue
        else:
            break
        used = position + 1
    return total + current, used


_HOUR = r"(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_MINUTES = r"(\d{1,2}|five|ten|twenty|twenty[- ]five|a? ?quarter|half)"
_HALF = r"\s*([ap])\.?\s?m\b"


def times_in(text: str) -> frozenset[int]:
    """Every clock time in a text, in minutes after midnight."""
    lowered = text.lower()
    found: set[int] = set()
    for match in re.finditer(rf"\b(\d{{1,2}})[:.h](\d{{2}})(?:{_HALF})?", lowered):
        _add_time(found, int(match.group(1)), int(match.group(2)), match.group(3))
    for match in re.finditer(rf"(?<![:.h])\b{_HOUR}{_HALF}", lowered):
        _add_time(found, small_number(match.group(1)), 0, match.group(2))
    for match in re.finditer(rf"\b{_MINUTES}(?: minutes)? (past|to) {_HOUR}\b", lowered):
        minutes = (
            30 if "half" in match.group(1) else 15 if "quarter" in match.group(1) else small_number(match.group(1))
        )
        hour = small_number(match.group(3))
        if minutes is not None and hour is not None:
            _add_time(found, hour if match.group(2) == "past" else hour - 1, minutes % 60 if match.group(2) == "past"
                      else 60 - minutes, None)  # fmt: skip
    for match in re.finditer(rf"\b{_HOUR}[ -](fifteen|thirty|forty[ -]five)\b", lowered):
        _add_time(found, small_number(match.group(1)), small_number(match.group(2)), None)
    for match in re.finditer(
        rf"\b(?:at|by|until|till|from|around|about|before|after) {_HOUR}\b(?![:.h]\d|{_HALF})|\b{_HOUR} o'clock",
        lowered,
    ):
        _add_time(found, small_number(match.group(1) or match.group(3)), 0, None)
    if re.search(r"\b(noon|midday)\b", lowered):
        found.add(720)
    if re.search(r"\bmidnight\b", lowered):
        found.add(0)
    return frozenset(found)


def _add_time(found: set[int], hour: int | None, minute: int | None, half: str | None) -> None:
    if hour is None or minute is None or not 0 <= hour <= 24 or not 0 <= minute < 60:
        return
    if half is not None:
        found.add((hour % 12 + (12 if half == "p" else 0)) * 60 + minute)
        return
    found.add(hour % 24 * 60 + minute)
    if hour <= 12:
        found.add((hour + 12) % 24 * 60 + minute)
