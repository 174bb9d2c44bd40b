"""Defines a check: its id, the clauses of SPEC.md that it tests, and the function that tests a backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from memarena.conformance.backend_under_test import BackendUnderTest

Status = Literal["passed", "failed", "skipped", "advice"]

Applies = Callable[[BackendUnderTest], str | None]
"""Returns why a check does not apply to a backend, None if it does."""


@dataclass(frozen=True)
class Check:
    """One property that is tested from outside. ``run`` raises BrokenError if the backend lacks it."""

    check_id: str
    clauses: tuple[str, ...]
    title: str
    run: Callable[[BackendUnderTest], None]
    applies: Applies = lambda _: None
    advisory: bool = False
    """Whether a finding breaks no clause and is only advice: it never fails a run."""

    @property
    def chapter(self) -> str:
        """Chapter of SPEC.md that the check belongs to, in lower case."""
        return self.check_id.partition(".")[0]


def check(
    check_id: str, *clauses: str, applies: Applies = lambda _: None, advisory: bool = False
) -> Callable[[Callable[[BackendUnderTest], None]], Check]:
    """Return a decorator that makes a function a check; its docstring is the title."""

    def wrap(function: Callable[[BackendUnderTest], None]) -> Check:
        title = " ".join((function.__doc__ or "").split()).removesuffix(".")
        return Check(check_id, clauses, title, function, applies, advisory)

    return wrap


@dataclass(frozen=True)
class CheckResult:
    """Result of a check. ``message``: what was observed (failed, advice), or why it was skipped."""

    check: Check
    status: Status
    message: str
    duration_s: float
    not_run: bool = False
    """Whether it was not run, as the time was over or the backend had stopped answering."""
