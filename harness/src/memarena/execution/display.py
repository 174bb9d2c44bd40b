"""Defines the interface through which a run shows its progress, so that this package prints nothing itself."""

from __future__ import annotations

from typing import Protocol


class Display(Protocol):
    """Shows the progress of a run. The CLI draws it; tests and scripts use :class:`SilentDisplay`."""

    def begin(self, total_questions: int, done_questions: int) -> None:
        """Begin, before the first question of the run."""

    def cell(self, name: str, days: int) -> None:
        """Begin a cell, which will ingest ``days`` days."""

    def advance(self, what: str) -> None:
        """Count a ``question`` that has an outcome, or a ``day`` that was ingested."""

    def note(self, message: str) -> None:
        """Show one line to the user."""

    def end(self) -> None:
        """End; nothing more will be shown."""


class SilentDisplay:
    """Shows nothing."""

    def begin(self, total_questions: int, done_questions: int) -> None: ...
    def cell(self, name: str, days: int) -> None: ...
    def advance(self, what: str) -> None: ...
    def note(self, message: str) -> None: ...
    def end(self) -> None: ...
