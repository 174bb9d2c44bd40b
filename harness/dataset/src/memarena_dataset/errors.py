"""Defines the base of all errors that a user reads, and the errors and problems of a data set.

A problem names file, line, field and reason: ``corpus_sessions.jsonl:17: turns.3.text: a text is expected``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from memarena_dataset.printing import write_err


class MemArenaError(Exception):
    """Base of the errors that a user can mend. A command writes it and ends with its exit code, with no traceback.

    Errors that the program handles itself do not derive from it. It is here since this is the one distribution that all
    programs install.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str = "", *, remedy: str = "") -> None:
        """Set the text: ``message`` states the fault in one line; ``remedy``, if any, is the command that mends it."""
        super().__init__(message)
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the attributes, so that a class whose constructor takes other arguments can be unpickled too."""
        return _unpickled, (type(self), self.args), self.__dict__

    def __str__(self) -> str:
        """Return ``message`` or ``message: remedy``."""
        return ": ".join(part for part in (super().__str__(), self.remedy) if part)

    def write(self) -> None:
        """Write what the user reads: one line on standard error."""
        write_err("error: " + " ".join(str(self).split()) + "\n")


class DatasetError(MemArenaError):
    """A data set cannot be used as asked."""


def _unpickled(kind: type[MemArenaError], args: tuple[object, ...]) -> MemArenaError:
    return kind.__new__(kind, *args)


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One fault of a data set, with its file, line and field."""

    file: str
    """Name relative to the folder, without ``.gz``."""
    reason: str
    """The fault, and the expected value."""
    line: int | None = None
    """Line number from 1; None if the file as a whole is meant."""
    field: str = ""
    """Path of the field, dots between names and positions: ``turns.3.text``. Empty: the row as a whole."""

    def __str__(self) -> str:
        """Return ``file:line: field: reason``, on one line."""
        position = self.file if self.line is None else f"{self.file}:{self.line}"
        parts = [position, self.field, " ".join(self.reason.split())]
        return ": ".join(part for part in parts if part)


class FieldError(ValueError):
    """A field of a row cannot be used. Raised while parsing; the reader adds file and line."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
