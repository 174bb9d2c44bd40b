"""Reads an answer, a question or a text gold once: words by meaning, sentences, typed values, yes or no, declining."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal

from memarena_dataset.values.amounts import amounts
from memarena_dataset.values.dates import durations, times, weekdays
from memarena_dataset.values.mentions import Mention
from memarena_dataset.values.periods import Period, periods, readable
from memarena_dataset.values.reading import read_text
from memarena_dataset.values.words import spell_out, words

from memarena.judging.tables import toml_file
from memarena.judging.text_gold.meanings import bases

NEGATIONS = frozenset(("not", "never", "no", "without", "neither", "nor", "instead", "rather", "wrong", "incorrect"))
"""Words that negate a sentence."""
Side = Literal["yes", "no"]

_TABLE = "text_gold.v1.toml"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(*A-Z0-9-])|\n+|;\s+")
_ITEM_BREAK = re.compile(r"\s*(?:,|;|/|\n|\s&\s|(?<!between )\band\b|\bas well as\b|\bplus\b)\s*", re.IGNORECASE)
"""Signs and words between the items of a list."""
_SIDE_ALONE = re.compile(r"\b(yes|no)\b(?=[\"'*)]*\s*(?:[.,;:!]|$))")
"""``yes`` or ``no`` at the end of a sentence or clause."""
_CLOCK = re.compile(r"[:.]|[ap]\.?\s?m\b|clock|noon|midday|midnight|past|to\b|in the|at ", re.IGNORECASE)
"""Signs of a time of day, which "around 20" lacks."""
_TIMES = re.compile(r"\b(?:once|twice|thrice)\b", re.IGNORECASE)
_COUNTS = {"once": 1, "twice": 2, "thrice": 3}
_YES_NO = re.compile(
    r"^\W*(?:would|is|are|was|were|does|do|did|has|have|had|can|could|will|should|might)\b(?!.*\bor\b)", re.IGNORECASE
)
"""The beginning of a question for yes or no; ``or`` in it asks for a choice instead."""


@dataclass(frozen=True)
class TextReading:
    """A text as it is compared: the gold, an alternative of it, an answer or a question."""

    text: str

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Stems of its content words, in order."""
        return tuple(bases(self.text))

    @cached_property
    def token_set(self) -> frozenset[str]:
        """Its tokens."""
        return frozenset(self.tokens)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All its words in lower case."""
        return tuple(words(self.text))

    @cached_property
    def sentences(self) -> tuple[TextReading, ...]:
        """Its sentences and lines; itself if there is only one."""
        parts = [part for part in _SENTENCE_END.split(self.text) if part and part.strip()]
        return tuple(TextReading(part) for part in parts) if len(parts) > 1 else (self,)

    @cached_property
    def items(self) -> tuple[TextReading, ...]:
        """Its parts, split as a list is: at commas, semicolons and ``and``."""
        parts = [part for part in _ITEM_BREAK.split(self.text) if part and bases(part)]
        return tuple(TextReading(part) for part in parts)

    @cached_property
    def periods(self) -> tuple[Period, ...]:
        """The stretches of the calendar that it names."""
        return tuple(periods(readable(self.text)))

    @cached_property
    def counted_text(self) -> str:
        """The text to which offsets of :attr:`values` refer: digits for words, ``twice`` as ``2 times``."""
        return _TIMES.sub(lambda m: f"{_COUNTS[m.group().lower()]} times", readable(self.text))

    @cached_property
    def values(self) -> tuple[Mention, ...]:
        """Amounts, durations, times and weekdays; numbers in words are digits, ``twice`` is ``2 times``."""
        text = self.counted_text
        lengths = durations(text)
        clock = [m for m in times(text) if _CLOCK.search(text[m.start : m.end])]
        dated = [(p.start, p.end) for p in periods(text)]
        apart = [*dated, *((m.start, m.end) for m in lengths), *((m.start, m.end) for m in clock)]
        all_mentions: list[Mention] = [*lengths, *clock, *weekdays(text, []), *amounts(text, apart)]
        free = (m for m in all_mentions if not any(start < m.end and m.start < end for start, end in dated))
        return tuple(sorted(free, key=lambda m: m.start))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Words of its proper names in lower case."""
        return tuple(dict.fromkeys(w for m in read_text(self.text).of_kind("proper") for w in getattr(m, "name", ())))

    @cached_property
    def side(self) -> Side | None:
        """Yes or no if it opens so or says only one of them by itself; else None."""
        spelled = spell_out(self.text)
        if _side_pattern("opens_no").search(spelled):
            return "no"
        if _side_pattern("opens_yes").search(spelled):
            return "yes"
        alone = set(_SIDE_ALONE.findall(spelled))
        if alone == {"no"}:
            return "no"
        return "yes" if alone == {"yes"} else None

    @cached_property
    def is_guess(self) -> bool:
        """Whether it calls its side likely; then an answer may give any reason for the same side."""
        return bool(re.search(r"\b(?:likely|probably|unlikely)\b", self.text, re.IGNORECASE))

    @cached_property
    def leaning(self) -> Side | None:
        """The side that it takes outright, or its first sentence by other words than yes or no; else None."""
        if self.side:
            return self.side
        spelled = spell_out(self.sentences[0].text)
        if _side_pattern("says_no").search(spelled):
            return "no"
        return "yes" if _side_pattern("says_yes").search(spelled) else None

    @cached_property
    def declines(self) -> bool:
        """Whether it has a phrase of declining."""
        spelled = " ".join(spell_out(self.text).split())
        return any(pattern.search(spelled) for pattern in _declining_patterns())

    @cached_property
    def negates(self) -> bool:
        """Whether it has a word of negation."""
        return not NEGATIONS.isdisjoint(words(spell_out(self.text)))

    @cached_property
    def asks_yes_or_no(self) -> bool:
        """Whether it is a question for yes or no."""
        return bool(_YES_NO.search(self.text)) or "yes or no" in self.text.lower()


@lru_cache(maxsize=4096)
def read(text: str) -> TextReading:
    """Return a text as read. Recent ones are cached: question and gold are compared with every cell's answer."""
    return TextReading(text)


@cache
def frame_words() -> frozenset[str]:
    """Return the words that may be around a value without adding to it or negating it."""
    return frozenset(" ".join(toml_file(_TABLE)["frame"]).split())


@cache
def _declining_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in toml_file(_TABLE)["declines"])


@cache
def _side_pattern(name: str) -> re.Pattern[str]:
    return re.compile(toml_file(_TABLE)["side"][name])
