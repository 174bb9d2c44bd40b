"""Errors of this package: bad input, and refusals with their reasons."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.log.base import Record


class SparkError(Exception):
    """Bad input or a missing tool; the message is one line for the user."""


class Refusal(Record):
    """One reason why a run is not started, or a result not certified."""

    code: str
    reason: str
    """What was found, and what was expected."""
    remedy: str


class RefusedError(Exception):
    """The work was refused. Nothing that was there before has changed."""

    def __init__(self, what: str, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"{what}: refused: " + "; ".join(f"{refusal.code}: {refusal.reason}" for refusal in refusals))
        self.refusals = tuple(refusals)
