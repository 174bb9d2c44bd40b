"""What can be wrong with a data set: one problem of one row, and the error that stops a run.

A problem names file, line, field and reason: ``corpus_sessions.jsonl:17: turns.3.text: a text is expected``.
"""

from __future__ import annotations

from dataclasses import dataclass


class DatasetError(Exception):
    """A data set cannot be used as asked. The message is one line for people."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One thing that is wrong in one place of a data set."""

    file: str
    """Name relative to the folder, without ``.gz``."""
    reason: str
    """What is wrong, and what was expected."""
    line: int | None = None
    """From 1; None where the file as a whole is meant."""
    field: str = ""
    """Path of the field, dots between names and positions: ``turns.3.text``. Empty: the row as a whole."""

    def __str__(self) -> str:
        """``file:line: field: reason``, on one line."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        parts = [place, self.field, " ".join(self.reason.split())]
        return ": ".join(part for part in parts if part)


class FieldError(ValueError):
    """A field of a row cannot be used. Raised while parsing; the reader adds file and line."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
