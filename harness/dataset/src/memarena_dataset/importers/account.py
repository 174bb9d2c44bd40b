"""Records what an import counts, skips and changes, and excludes the questions that a user leaves out.

The account is printed and written to ``pipeline_report.json``: without it, no reader of a result would know which
questions of the published data set are missing or different.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memarena_dataset.errors import DatasetError


@dataclass(frozen=True, slots=True)
class Note:
    """A difference between import and source: an entry was ``skipped`` or ``changed`` (imported in another form)."""

    kind: Literal["skipped", "changed"]
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}: {self.reason}"


@dataclass
class Account:
    """The counts of an import and its differences from the source; ``counts``: by name, as the report shows them."""

    source: str
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[Note] = field(default_factory=list)

    def skip(self, what: str, reason: str) -> None:
        """Record an entry that is left out."""
        self.notes.append(Note("skipped", what, reason))

    def change(self, what: str, reason: str) -> None:
        """Record an entry that is imported in another form."""
        self.notes.append(Note("changed", what, reason))

    def report(self) -> dict[str, Any]:
        """Return counts and notes as JSON values for ``pipeline_report.json``."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "notes": [{"kind": note.kind, "what": note.what, "reason": note.reason} for note in self.notes],
        }


class LeftOut:
    """Ids of questions that a user excludes, so that a question that cannot be used does not stop the import."""

    def __init__(self, names: Collection[str], account: Account) -> None:
        self._names = set(names)
        self._excluded: set[str] = set()
        self._account = account

    def exclude_if_listed(self, name: Any) -> bool:
        """Return whether the question with that id is excluded, and record the exclusion."""
        if name not in self._names:
            return False
        self._excluded.add(name)
        self._account.skip(str(name), "left out as asked")
        return True

    def check(self, source: Path) -> None:
        """Raise DatasetError if an excluded id is that of no question."""
        if unknown := sorted(self._names - self._excluded):
            raise DatasetError(f"{source}: --leave-out {unknown[0]}: no question has this id")
