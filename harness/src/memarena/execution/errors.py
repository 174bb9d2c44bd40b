"""Errors of planning and executing a run."""

from __future__ import annotations


class RunError(Exception):
    """Bad input to a run: one line for the user, who then exits with code 2."""


class InfraError(Exception):
    """Something of ours failed while a run was going on; the log says what and can be resumed."""


class CellError(RunError):
    """One cell cannot go on, and the others can: the message is one line. Its open questions stay open."""
