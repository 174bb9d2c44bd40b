"""Replaces numbers in words by digits, so that later steps read a single form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memarena_dataset.values.calendar import MONTHS

_UNIT_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = {word: number for number, word in enumerate(_UNIT_WORDS.split())}
_TENS = {word: number * 10 for number, word in enumerate(_TEN_WORDS.split(), 2)}
_SCALES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_NUMBER = "|".join([*_UNITS, *_TENS, "hundred", "dozen", *_SCALES])
_BY_LETTER = "|".join(  # z(?:ero)|o(?:ne)|t(?:wo|hree|en|…)|…: read at twice the speed of a plain list
    f"{first}(?:{'|'.join(word[1:] for word in _NUMBER.split('|') if word[0] == first)})"
    for first in dict.fromkeys(word[0] for word in _NUMBER.split("|"))
)
_SEQUENCE = re.compile(
    rf"\b(?:(?:a|half a) (?=hundred|thousand|million|dozen))?"
    rf"(?:{_BY_LETTER})(?:(?:[\s-]+|\s+and\s+)(?:{_BY_LETTER}))*\b",
    re.I,
)
_ORDINAL_WORDS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth
seventeenth eighteenth nineteenth twentieth
twenty-first twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth
twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first
"""
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_WORDS.split(), 1)}
_MONTHS = "|".join(MONTHS)
ORDINAL_PATTERN = "|".join(sorted((w.replace("-", "[- ]") for w in _ORDINALS), key=len, reverse=True))
_ORDINAL = re.compile(rf"\b({ORDINAL_PATTERN})\b(?=\s+(?:of\s+)?(?:{_MONTHS})\b)", re.I)
"""An ordinal word is a day's number only before its month: ``the fifth of May``; of others see ``May the fifth``."""
_ORDINAL_BEHIND = re.compile(rf"(?<=\b)({_MONTHS})(\s+(?:the\s+)?)({ORDINAL_PATTERN})\b", re.I)
_TOKEN = re.compile(r"[a-z]+", re.I)
_COUPLE = re.compile(r"\ba couple(?: of)?(?= \w)", re.I)
_SAYS_NUMBER = frozenset(_TOKEN.findall(f"{_NUMBER} {' '.join(_ORDINALS)} couple"))
"""Words of which a text with a number in words contains at least one."""
_COUNTABLE = re.compile(
    r"[\s-]+(?:seconds?|minutes?|mins?|hours?|days?|nights?|weeks?|months?|years?|euros?|dollars?|pounds?|cents?|percent|"
    r"km|kilometers?|kilometres?|miles?|metres?|meters?|kg|kilos?|o'clock)\b",
    re.I,
)


@lru_cache(maxsize=4096)  # an answer is read several times, and a gold form for every answer
def digits_for_words(text: str, every_digit: bool = False) -> str:
    """Return the text with spelled-out numbers as digits: ``four thousand two hundred`` is ``4200``, ``two`` is ``2``.

    Single digits stay separate (``four two`` is ``4 2``); years in two halves are joined (``nineteen eighty`` is
    ``1980``). A lone ``one`` is replaced only before a unit such as ``hour``, since it is mostly a pronoun, or with
    ``every_digit``.
    """
    if text.isascii() and _SAYS_NUMBER.isdisjoint(_TOKEN.findall(text.lower())):
        return text
    text = _ORDINAL.sub(lambda match: f"{ordinal_of(match[1])}th", text)
    text = _ORDINAL_BEHIND.sub(lambda match: f"{match[1]}{match[2]}{ordinal_of(match[3])}th", text)
    return _SEQUENCE.sub(lambda match: _digits(match, every_digit), _COUPLE.sub("2", text))


def ordinal_of(word: str) -> int | None:
    """Return the day number of an ordinal word ("twenty-first", "twenty first"); None for any other word."""
    return _ORDINALS.get(word.lower().replace(" ", "-"))


def numbers_of_words(text: str) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the runs of number words: start and end offset, and the numbers of the run in order."""
    for match in _SEQUENCE.finditer(text):
        yield (*match.span(), [int(piece) for piece in _pieces(match.group().lower()) if piece != "and"])


def _digits(match: re.Match[str], every_digit: bool) -> str:
    spoken = match.group().lower()
    text = match.string
    if spoken == "one" and not every_digit and not _COUNTABLE.match(text, match.end()):
        return match.group()
    pieces = list(_pieces(spoken))
    return " ".join(_joined_years(pieces))


@dataclass
class _Open:
    """A number while its words are being read."""

    total: int = 0
    current: int | None = None
    room: int = 100
    """The value of the next word must be below this to continue the number."""
    scale: int = 10**12

    def value(self) -> int:
        return self.total + (self.current or 0)


def _pieces(spoken: str) -> Iterator[str]:
    """Yield the numbers of a run of number words, and each ``and`` between two numbers."""
    open_number: _Open | None = None
    joined_by_and = False
    for word in _TOKEN.findall(spoken):
        if word in ("and", "a", "half"):
            joined_by_and = joined_by_and or word == "and"
            continue
        if open_number is not None and not _takes(open_number, word, joined_by_and):
            yield str(open_number.value())
            if joined_by_and:
                yield "and"
            open_number = None
        if open_number is None:
            open_number = _Open()
            _takes(open_number, word, joined_by_and=False)
        joined_by_and = False
    if open_number is not None:  # half a dozen is 6
        yield str(6 if spoken.startswith("half") and open_number.value() == 12 else open_number.value())


def _takes(number: _Open, word: str, joined_by_and: bool) -> bool:
    """Add a word to the number if it can continue it; return whether it could."""
    if joined_by_and and not (number.room == 100 and number.value() >= 100):
        return False
    if word in _SCALES:
        return _take_scale(number, _SCALES[word])
    if word in ("hundred", "dozen"):
        return _take_multiple(number, 100 if word == "hundred" else 12)
    value = _UNITS.get(word, _TENS.get(word, 0))
    if value >= number.room:
        return False
    number.current = (number.current or 0) + value
    number.room = 10 if word in _TENS else 0
    return True


def _take_multiple(number: _Open, size: int) -> bool:
    """Multiply the number, as in ``two hundred``, ``two dozen``; other words may follow a hundred, but not a dozen."""
    if number.current is not None and not 1 <= number.current <= 99:
        return False
    number.current, number.room = (number.current or 1) * size, 100 if size == 100 else 0
    return True


def _take_scale(number: _Open, scale: int) -> bool:
    if scale >= number.scale or (number.current is None and number.total):
        return False
    number.total += (number.current if number.current is not None else 1) * scale
    number.current, number.room, number.scale = None, 100, scale
    return True


def _joined_years(pieces: list[str]) -> Iterator[str]:
    """Yield the pieces with a year in two halves (``19 84``) joined; all others unchanged."""
    position = 0
    while position < len(pieces):
        head, tail = pieces[position], pieces[position + 1 : position + 2]
        if head in ("15", "16", "17", "18", "19", "20") and tail and len(tail[0]) == 2 and int(tail[0]) >= 10:
            yield head + tail[0]
            position += 2
        else:
            yield head
            position += 1
