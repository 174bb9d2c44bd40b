"""Detects hard facts that are not in the plan: numbers, times, dates, names, and things that planned facts are about.

Such words could contradict a gold answer, or make an absent claim present, so a turn may only hold those of its plan.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from pathlib import Path

from memarena_dataset.values.calendar import MONTHS, WEEKDAYS
from memarena_dataset.values.generous import explicit_dates_in, numbers_in, times_in
from memarena_dataset.values.phrases import normal, tokens_of

from memarena_masim.facts.catalogue import base, catalogue
from memarena_masim.pack import PackHalf
from memarena_masim.world.build import pools
from memarena_masim.world.model import World

TABLES = Path(__file__).resolve().parent / "tables"
_CAPITAL = re.compile(r"(?<![\w'’-])[A-ZÀ-ÖØ-Þ][\w'’-]*")
_PLAIN_MONTHS = frozenset(MONTHS) - {"march", "may", "august"}
"""Months whose names are no other words."""
_DIGIT = re.compile(r"\d")
_BELOW_TEN = ("zero", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    *(f"{stem}teen" for stem in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
)
_TENS = tuple(f"{stem}ty" for stem in ("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine"))
_COUNTING = frozenset((*_BELOW_TEN, *_TEENS, *_TENS, "dozen", "hundred", "thousand", "million"))
_COUNTING |= {"noon", "midday", "midnight"}
"""Sentences without any of these, or a digit, hold no number and no time, and need no closer reading."""
_DATING = frozenset((*MONTHS, *(month[:3] for month in MONTHS), *WEEKDAYS, *(f"{day}s" for day in WEEKDAYS)))
_HARMLESS_NUMBERS = frozenset({0.0, 1.0})
"""``one`` is a pronoun more often than a number."""
_OPENS = "\"“‘'(—-:…"
"""Characters after which a capital may open a sentence."""


@dataclass(frozen=True, slots=True)
class HardFact:
    """A hard fact in a text. ``kind`` is number, time, date, name or value."""

    kind: str
    words: str


class Allowed:
    """The facts that a turn may state: all that are in ``texts``. Parsed lazily."""

    def __init__(self, texts: Iterable[str], said_on: date) -> None:
        self._joined = " . ".join(texts)
        self.said_on = said_on

    @cached_property
    def numbers(self) -> frozenset[float]:
        """Numbers, and those that say nothing."""
        return numbers_in(self._joined) | _HARMLESS_NUMBERS

    @cached_property
    def times(self) -> frozenset[int]:
        """Clock times in minutes."""
        return times_in(self._joined)

    @cached_property
    def dates(self) -> frozenset[date]:
        """Dates with day and month."""
        return explicit_dates_in(self._joined, self.said_on)

    @cached_property
    def normal(self) -> str:
        """Return the texts as normalised by ``normal``."""
        return normal(self._joined)

    @cached_property
    def words(self) -> frozenset[str]:
        """Single words."""
        return frozenset(self.normal.split())


class Detector:
    """Finds the hard facts of one world in sentences."""

    def __init__(self, world: World, pack: PackHalf) -> None:
        pool = pools(pack)
        self._names = _listed("given_names.v1.txt") | {
            word
            for name in (*pool["first_names"], *pool["last_names"], *(person.name for person in world.people))
            for word in name.split()
        }
        self._phrases = _phrases(pack)

    def find(self, sentence: str, allowed: Allowed) -> tuple[HardFact, ...]:
        """Return every hard fact of a sentence that is not allowed."""
        tokens = tokens_of(sentence)
        facts = [*self._named(sentence, allowed), *self._values(tokens, allowed)]
        counts = _DIGIT.search(sentence) is not None
        if counts or not _COUNTING.isdisjoint(tokens):
            facts += _numbers(sentence, allowed)
        if counts or not _DATING.isdisjoint(tokens):
            facts += _dates(sentence, tokens, allowed)
        return tuple(facts)

    def _named(self, sentence: str, allowed: Allowed) -> Iterable[HardFact]:
        """Yield capitalised words inside a sentence, and known names anywhere."""
        for match in _CAPITAL.finditer(sentence):
            word = re.sub(r"['’]s?$", "", match.group())
            if allowed.words.issuperset(tokens_of(word)):
                continue
            text_before = sentence[: match.start()].rstrip()
            opens = not text_before or text_before[-1] in ".!?" or text_before[-1] in _OPENS
            if word in self._names or not (opens or word in _harmless() or word.lower() in _CALENDAR):
                yield HardFact("name", word)

    def _values(self, tokens: Sequence[str], allowed: Allowed) -> Iterable[HardFact]:
        """Yield items, values and finds that facts of the world are about."""
        words = f" {' '.join(tokens)} "
        for token in dict.fromkeys(tokens):
            for needle in self._phrases.get(token, ()):
                if needle in words and needle not in allowed.normal:
                    yield HardFact("value", needle.strip())


def data_files() -> dict[str, str]:
    """Return the SHA-256 of each table, by file name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(TABLES.glob("*.txt"))}


_CALENDAR = frozenset((*MONTHS, *WEEKDAYS))


def _numbers(sentence: str, allowed: Allowed) -> Iterable[HardFact]:
    times = times_in(sentence) - allowed.times
    extra = {number for number in numbers_in(sentence) if number not in allowed.numbers}
    if times and (extra or ":" in sentence or re.search(r"\b(noon|midday|midnight|o'clock)\b", sentence.lower())):
        yield HardFact("time", ", ".join(f"{time // 60:02d}:{time % 60:02d}" for time in sorted(times)))
    if extra:
        yield HardFact("number", ", ".join(f"{number:g}" for number in sorted(extra)))


def _dates(sentence: str, tokens: Sequence[str], allowed: Allowed) -> Iterable[HardFact]:
    for moment in sorted(explicit_dates_in(sentence, allowed.said_on) - allowed.dates):
        yield HardFact("date", moment.isoformat())
    for token in tokens:
        if token in _PLAIN_MONTHS or token in WEEKDAYS or token.removesuffix("s") in WEEKDAYS:
            day = token if token in WEEKDAYS or token in _PLAIN_MONTHS else token[:-1]
            if day not in allowed.words:
                yield HardFact("date", token)


@cache
def _listed(name: str) -> frozenset[str]:
    lines = (TABLES / name).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def _harmless() -> frozenset[str]:
    return _listed("capitals.v1.txt")


@cache
def _phrases(pack: PackHalf) -> dict[str, tuple[str, ...]]:
    """Return the normal forms of items and values that do not come up by chance, by their first word."""
    facts = catalogue(pack)
    needles = {_needle(text) for text in (*facts.finds, *facts.sources)}
    happenings = {_needle(base(happening).split(" ", 1)[-1]) for happening in facts.happenings}
    needles |= {happening for happening in happenings if " " in happening}
    for attribute in facts.attributes.values():
        values = [text for text in attribute.kind.choices if not any(letter.isdigit() for letter in text)]
        needles |= {needle for needle in map(_needle, (*attribute.items, *values)) if facts.distinctive(needle)}
    by_word: dict[str, set[str]] = {}
    for needle in needles - _CALENDAR - {""}:
        by_word.setdefault(needle.split(" ", 1)[0], set()).add(f" {needle} ")
    return {word: tuple(sorted(phrases)) for word, phrases in by_word.items()}


def _needle(text: str) -> str:
    words = tokens_of(text)
    while len(words) > 1 and words[0] in ("the", "a", "an"):
        words = words[1:]
    return " ".join(words)
