"""Defines the errors of this package: bad input, and refusals with their reasons."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from memarena.log.base import Record
from memarena_dataset.errors import MemArenaError
from memarena_dataset.printing import write_out

EXIT_REFUSED = 4
"""The command worked, and its answer is no: refused, does not verify, does not agree. Not 1, with which a crash ends:
a script that accepts refusals must not accept crashes too."""


class SparkError(MemArenaError):
    """Bad input or a missing tool; the message is one line for the user."""


class FileError(SparkError):
    """A file cannot be used; ``file`` is its name, ``reason`` says why."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


class Refusal(Record):
    """A reason why a run is not started, or a result not certified."""

    code: str
    reason: str
    """The actual and the expected state."""
    remedy: str


class RefusedError(MemArenaError):
    """The work was refused. Existing files are unchanged."""

    exit_code = EXIT_REFUSED

    def __init__(self, what: str, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"{what}: refused: " + "; ".join(f"{refusal.code}: {refusal.reason}" for refusal in refusals))
        self.refusals = tuple(refusals)

    def write(self) -> None:
        """Write each reason and its remedy to standard output."""
        print_refusals(self.refusals)


def print_refusals(refusals: Sequence[Refusal]) -> None:
    """Print one line per reason, with its remedy below."""
    for refusal in refusals:
        write_out(f"refused  {refusal.code}: {refusal.reason}\n         do: {refusal.remedy}\n")
    sys.stdout.flush()
