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
    """A text as read on a day; offsets of mentions and clauses count in ``text``."""

    text: str
    """Tidied, with digits for spelled-out numbers, case kept."""
    today: date | None = None
    """The day against which ``yesterday`` is read."""

    @cached_property
    def mentions(self) -> tuple[Mention, ...]:
        """Every value mentioned, by position."""
        found_dates = dates(self.text, self.today)
        found_times, found_durations = times(self.text), durations(self.text)
        spans: list[Mention] = [*found_dates, *found_times, *found_durations]
        mentions: list[Mention] = [
            *spans,
            *(m for m in dotted_times(self.text, found_times) if not any(s.start <= m.start < s.end for s in spans)),
            *weekdays(self.text, found_dates),
            *amounts(self.text, [(m.start, m.end) for m in spans]),
            *proper_names(self.text),
        ]
        return tuple(sorted(mentions, key=lambda m: (m.start, m.end, m.kind)))

    def of_kind(self, *kinds: Kind) -> list[Mention]:
        """Mentions of the kinds given."""
        return [m for m in self.mentions if m.kind in kinds]


@lru_cache(maxsize=4096)
def read_text(text: str, today: date | None = None) -> ReadText:
    """Read a text. ``today`` resolves relative dates; without it they are no values.

    The latest readings are kept with what was found in them: a question, its evidence and a baseline's answer are read
    again for every answer and every question.
    """
    return ReadText(digits_for_words(tidy(text)), today)
