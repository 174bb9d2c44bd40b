"""Defines the errors with which a check ends that does not pass, and the error for the operator."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class BrokenError(Exception):
    """The backend breaks a clause; the message says what was observed."""


class SkippedError(Exception):
    """The check does not apply to this backend; the message says why."""


class ConformanceError(MemArenaError):
    """The suite cannot be run at all: bad input, or a target that cannot be reached. One line for the user."""
