"""Errors of planning and executing a run."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class RunError(MemArenaError):
    """Bad input to a run: one line for the user, who then exits with code 2."""


class InfraError(MemArenaError):
    """Something of ours failed while a run was going on; the log says what and can be resumed."""

    exit_code = 3


class CellError(RunError):
    """One cell cannot go on, and the others can: the message is one line. Its open questions stay open."""
