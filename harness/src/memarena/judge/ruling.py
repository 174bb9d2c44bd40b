"""What a judge says of one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Route = Literal["value", "token_f1"]


@dataclass(frozen=True)
class Ruling:
    """A word on one answer. ``reason`` is one line for people; ``score`` is 0 to 1."""

    route: Route
    correct: bool
    score: float
    reason: str


def right(route: Route, reason: str, score: float = 1.0) -> Ruling:
    """The answer counts as correct."""
    return Ruling(route, True, score, reason)


def wrong(route: Route, reason: str, score: float = 0.0) -> Ruling:
    """The answer counts as wrong."""
    return Ruling(route, False, score, reason)
