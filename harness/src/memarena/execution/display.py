"""Defines what a run shows while it goes on."""

from __future__ import annotations

from typing import Protocol


class Display(Protocol):
    """What a run shows while it goes on. The CLI draws it; tests and scripts use :class:`SilentDisplay`."""

    def begin(self, total_questions: int, done_questions: int) -> None:
        """The run is about to ask its first question."""

    def cell(self, name: str, days: int) -> None:
        """A cell begins; it will take in ``days`` days."""

    def advance(self, what: str) -> None:
        """A ``question`` has an outcome or a ``day`` was ingested."""

    def note(self, message: str) -> None:
        """One line for the user."""

    def end(self) -> None:
        """Nothing more will be shown."""


class SilentDisplay:
    """Shows nothing."""

    def begin(self, total_questions: int, done_questions: int) -> None: ...
    def cell(self, name: str, days: int) -> None: ...
    def advance(self, what: str) -> None: ...
    def note(self, message: str) -> None: ...
    def end(self) -> None: ...
