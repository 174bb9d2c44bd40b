"""Defines the errors of planning and executing a run."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class RunError(MemArenaError):
    """Bad input to a run: one line for the user, who then exits with code 2."""


class InfraError(MemArenaError):
    """The harness or its models failed during a run; the log says what failed, and the run can be resumed."""

    exit_code = 3


class CellError(RunError):
    """A single cell cannot go on; other cells can. The message is one line; the cell's open questions stay open."""
