"""Reads a text once: its words with digits for numbers, and every value that it mentions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache

from memarena_dataset.values.amounts import amounts
from memarena_dataset.values.dates import dates, dotted_times, durations, times, weekdays
from memarena_dataset.values.mentions import Kind, Mention
from memarena_dataset.values.names import proper_names
from memarena_dataset.values.numbers import digits_for_words
from memarena_dataset.values.words import tidy


@dataclass(frozen=True)
class ReadText:
    """A text, read as of a day. Offsets of mentions and clauses refer to ``text``."""

    text: str
    """Tidied, with digits for spelled-out numbers, case kept."""
    today: date | None = None
    """The day to which ``yesterday`` refers; None: relative dates are not read."""

    @cached_property
    def mentions(self) -> tuple[Mention, ...]:
        """Every value that the text mentions, by position."""
        date_mentions = dates(self.text, self.today)
        time_mentions, duration_mentions = times(self.text), durations(self.text)
        spans: list[Mention] = [*date_mentions, *time_mentions, *duration_mentions]
        mentions: list[Mention] = [
            *spans,
            *(m for m in dotted_times(self.text, time_mentions) if not any(s.start <= m.start < s.end for s in spans)),
            *weekdays(self.text, date_mentions),
            *amounts(self.text, [(m.start, m.end) for m in spans]),
            *proper_names(self.text),
        ]
        return tuple(sorted(mentions, key=lambda m: (m.start, m.end, m.kind)))

    def of_kind(self, *kinds: Kind) -> list[Mention]:
        """Return the mentions of these kinds."""
        return [m for m in self.mentions if m.kind in kinds]


@lru_cache(maxsize=4096)
def read_text(text: str, today: date | None = None) -> ReadText:
    """Read a text. ``today`` resolves relative dates; without it they are not read.

    Readings are cached with their mentions, since a question, its evidence and a baseline's answer are read again for
    every answer and every question.
    """
    return ReadText(digits_for_words(tidy(text)), today)
