"""Replaces numbers in words by digits, so that later steps read a single form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
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
_MULTIPLES = {"hundred": 100, "dozen": 12}
_HALF, _QUARTER = Decimal("0.5"), Decimal("0.25")
_SHARES = {"half": _HALF, "onehalf": _HALF, "quarter": _QUARTER, "onequarter": _QUARTER, "threequarter": 3 * _QUARTER}
_NUMBER = "|".join([*_UNITS, *_TENS, *_MULTIPLES, *_SCALES])
_BY_LETTER = "|".join(  # z(?:ero)|o(?:ne)|t(?:wo|hree|en|…)|…: read at twice the speed of a plain list
    f"{first}(?:{'|'.join(word[1:] for word in _NUMBER.split('|') if word[0] == first)})"
    for first in dict.fromkeys(word[0] for word in _NUMBER.split("|"))
)
_GAP = r"[\s-]+"
_BEFORE_SIZE = rf"(?=(?:{'|'.join([*_MULTIPLES, *_SCALES])})\b)"
_SHARE = (
    rf"(?:(?:(?:an?|one){_GAP})?(?:half{_GAP}(?:of{_GAP})?(?:an?{_GAP})?|quarter{_GAP}(?:of{_GAP}an?{_GAP})?)"
    rf"|three{_GAP}quarters{_GAP}(?:of{_GAP}an?{_GAP})?){_BEFORE_SIZE}"
)
"""A share of the size that follows: ``half a`` before ``million``; after ``two and`` it belongs to that number."""
_DIGITS = (
    rf"(?<![\w.,:/'⁄])(?!(?:19|20)\d\d[^\S\n])(?:\d{{1,3}}(?:,\d{{3}}){{1,4}}(?:\.\d{{1,6}})?|\d{{1,15}}(?:[.,]\d{{1,6}})?)"
    rf"(?:(?:[^\S\n]+|-)and{_GAP}{_SHARE}|(?:[^\S\n]+|-)?){_BEFORE_SIZE}"
)
"""Digits before a size, in the same line: the ``2.5`` of ``2.5 million``, and ``2 and a half`` before ``million``.

A year is none: the ``2023`` of ``in 2023 thousand people came``."""
_WORD = rf"(?:{_DIGITS})?(?:{_BY_LETTER})"
_SEQUENCE = re.compile(
    rf"(?<!\w)(?:a {_BEFORE_SIZE}|{_SHARE})?{_WORD}(?:(?:{_GAP}and{_GAP}{_SHARE}|{_GAP}|\s+and\s+){_WORD})*"
    # A share after the size: "a million and a half".
    rf"(?:(?:(?<=dozen)|(?<=thousand)|(?<=llion)){_GAP}and{_GAP}a{_GAP}(?:half|quarter)(?!{_GAP}of\b|-[a-z]))?\b",
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
_PART = re.compile(r"[a-z]+|\d[\d.,]*")
_SHARE_WORDS = re.compile(rf"\b(one|three){_GAP}(half|quarter)s?\b")
"""A share in two words, which are read as a single one."""
_SMALL_WORDS = frozenset(("a", "an", "of"))
_COUPLE = re.compile(r"\ba couple(?: of)?(?= \w)", re.I)
_SAYS_NUMBER = frozenset(_TOKEN.findall(f"{_NUMBER} {' '.join(_ORDINALS)} couple"))
"""Words of which a text with a number in words contains at least one."""
_COUNTABLE = re.compile(
    r"(?:[\s-]+and[\s-]+a[\s-]+half)?[\s-]+(?:seconds?|minutes?|mins?|hours?|days?|nights?|weeks?|months?|years?|"
    r"euros?|dollars?|pounds?|cents?|percent|km|kilometers?|kilometres?|miles?|metres?|meters?|kg|kilos?|o'clock)\b",
    re.I,
)


@lru_cache(maxsize=4096)  # an answer is read several times, and a gold form for every answer
def digits_for_words(text: str, every_digit: bool = False) -> str:
    """Return the text with spelled-out numbers as digits: ``four thousand two hundred`` is ``4200``, ``two`` is ``2``.

    Digits before a size and shares of a size are part of the number: ``2.5 million``, ``half a million``.
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


def numbers_of_words(text: str) -> Iterator[float]:
    """Yield the numbers that are spelled out in the text, in order."""
    for match in _SEQUENCE.finditer(_COUPLE.sub("2", text)):
        yield from (float(piece) for piece in _pieces(match.group().lower()) if piece != "and")


def _digits(match: re.Match[str], every_digit: bool) -> str:
    spoken = match.group().lower()
    text = match.string
    if spoken == "one" and not every_digit and not _COUNTABLE.match(text, match.end()):
        return match.group()
    pieces = list(_pieces(spoken))
    return " ".join(_joined_years(pieces))


@dataclass
class _Group:
    """A number with the size that ends it: ``six million two hundred and five`` is two groups."""

    joined_by_and: bool
    """Whether ``and`` is before it."""
    value: Decimal | None = None
    """The factor of ``scale``; None: it has no word, as in ``a million``."""
    room: int = 100
    """The value of the next word must be below this to continue the group."""
    scale: int = 1
    multiplied: bool = False
    """Whether a hundred or a dozen is in ``value``."""

    @property
    def total(self) -> Decimal:
        return (1 if self.value is None else self.value) * Decimal(self.scale)


def _pieces(spoken: str) -> Iterator[str]:
    """Yield the numbers of a run of number words as digits, and each ``and`` between two numbers."""
    total: Decimal | None = None
    scale = 1
    for group in _groups(_PART.findall(_SHARE_WORDS.sub(r"\1\2", spoken))):
        if total is not None and group.scale < scale and group.value is not None:
            # The thousands after the millions; but "one million and two million" are two numbers.
            total, scale = total + group.total, group.scale
            continue
        if total is not None:
            yield _plain(total)
            if group.joined_by_and:
                yield "and"
        total, scale = group.total, group.scale
    if total is not None:
        yield _plain(total)


def _plain(number: Decimal) -> str:
    """Return a number in digits without an exponent or a trailing zero after the point."""
    return format(number.normalize(), "f")


def _groups(words: Sequence[str]) -> Iterator[_Group]:
    """Yield the groups of a run of number words in lower case, digits among them."""
    group: _Group | None = None
    joined_by_and = False
    for index, word in enumerate(words):
        if word in _SMALL_WORDS:
            continue
        if word == "and":
            joined_by_and = True
            continue
        if group is not None and word in _SHARES and joined_by_and and _takes_share(group, words, index):
            joined_by_and = False
            continue
        if group is None or not _takes(group, word, joined_by_and):
            if group is not None:
                yield group
            group = _Group(joined_by_and)
            _takes(group, word, joined_by_and=False)
        joined_by_and = False
    if group is not None:
        yield group


def _takes_share(group: _Group, words: Sequence[str], index: int) -> bool:
    """Add a share after ``and`` to the group that it belongs to; return whether it belongs to this one."""
    share, following = _SHARES[words[index]], words[index + 1 : index + 2]
    if not following:
        # "a million and a half"; and "a dozen and a half", whose dozen is in the value already.
        group.value = (1 if group.value is None else group.value) + share * (12 if group.scale == 1 else 1)
        return True
    if group.scale > 1 or group.value is None or following[0] in _SMALL_WORDS:
        # "two and half a million" is two numbers.
        return False
    if group.multiplied and following[0] in _MULTIPLES:
        # So is "two dozen and a half dozen".
        return False
    group.value, group.room = group.value + share, 0
    return True


def _takes(group: _Group, word: str, joined_by_and: bool) -> bool:
    """Add a word to the group if it can continue it; return whether it could."""
    if group.scale > 1 or (joined_by_and and not (group.room == 100 and (group.value or 0) >= 100)):
        return False
    if word in _SCALES:
        group.scale = _SCALES[word]
        return True
    if word in _MULTIPLES:
        return _take_multiple(group, _MULTIPLES[word])
    value = _value_of(word)
    opens = word in _SHARES or word[0].isdigit()
    if (opens and group.value is not None) or (not opens and value >= group.room):
        return False
    group.value = (group.value or 0) + value
    group.room = 10 if word in _TENS else 0
    return True


def _value_of(word: str) -> Decimal:
    """Return the value of a word for a number below 100, of a share, or of digits such as ``1,200`` and ``2,5``."""
    if word[0].isdigit():
        is_grouped = re.search(r",\d{3}\b", word) and not word.startswith("0")
        return Decimal(word.replace(",", "") if is_grouped else word.replace(",", "."))
    return Decimal(_SHARES.get(word, _UNITS.get(word, _TENS.get(word, 0))))


def _take_multiple(group: _Group, size: int) -> bool:
    """Multiply the group, as in ``two hundred``, ``two dozen``; other words may follow a hundred, but not a dozen."""
    if group.value is not None and not 0 < group.value <= 99:
        return False
    group.value, group.room = (1 if group.value is None else group.value) * Decimal(size), 100 if size == 100 else 0
    group.multiplied = True
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
