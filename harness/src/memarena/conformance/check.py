"""What a check is: an id, the clauses of SPEC.md that it holds a backend to, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from memarena.conformance.backend_under_test import BackendUnderTest

Status = Literal["passed", "failed", "skipped", "advice"]

Applies = Callable[[BackendUnderTest], str | None]
"""Says why a check does not apply to a backend, None where it does."""


def always(_: BackendUnderTest) -> str | None:
    """Every backend is held to it."""
    return None


@dataclass(frozen=True)
class Check:
    """One property, seen from outside. ``run`` raises BrokenError where it does not hold."""

    check_id: str
    clauses: tuple[str, ...]
    title: str
    run: Callable[[BackendUnderTest], None]
    applies: Applies = always
    advisory: bool = False
    """What it finds is worth knowing and breaks no clause: it never fails a run."""

    @property
    def chapter(self) -> str:
        """Chapter of SPEC.md that the check belongs to, in lower case."""
        return self.check_id.partition(".")[0]


def check(
    check_id: str, *clauses: str, applies: Applies = always, advisory: bool = False
) -> Callable[[Callable[[BackendUnderTest], None]], Check]:
    """Make a function a check. Its docstring is the title."""

    def wrap(function: Callable[[BackendUnderTest], None]) -> Check:
        title = " ".join((function.__doc__ or "").split()).removesuffix(".")
        return Check(check_id, clauses, title, function, applies, advisory)

    return wrap


@dataclass(frozen=True)
class CheckResult:
    """How a check ended. ``message`` says what was seen (failed, advice) or why it does not apply (skipped)."""

    check: Check
    status: Status
    message: str
    duration_s: float
    not_run: bool = False
    """Whether it was left out since time was over or the backend had stopped answering."""
