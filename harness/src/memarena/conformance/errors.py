"""How a check ends when it does not pass, and what the operator has to mend."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class BrokenError(Exception):
    """The backend does what a clause forbids, or leaves out what it demands; the message says what was seen."""


class SkippedError(Exception):
    """The check does not apply to this backend; the message says why."""


class ConformanceError(MemArenaError):
    """The suite cannot be run at all: bad input, or a target that cannot be reached. One line for the user."""
