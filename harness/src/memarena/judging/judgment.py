"""What a judge says of one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memarena_dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, TextGold

from memarena.judging.reasons import Reason, ReasonCode

Route = Literal["value", "token_f1"]
OpenGold = TextGold | CounterfactualGold | ConflictGold | AnaphoraGold
"""Gold of open answers, which this judge judges."""


@dataclass(frozen=True)
class Judgment:
    """A word on one answer, with its reason. ``score`` is 0 to 1."""

    route: Route
    correct: bool
    score: float
    reason: Reason

    @property
    def text(self) -> str:
        """The reason in one line for people."""
        return self.reason.text(self.score)


def right(
    route: Route, code: ReasonCode, score: float = 1.0, *, value: str = "", said: str = "", threshold: float = 0.0
) -> Judgment:
    """The answer counts as correct."""
    return Judgment(route, True, score, Reason(code, value, said, threshold))


def wrong(
    route: Route, code: ReasonCode, score: float = 0.0, *, value: str = "", said: str = "", threshold: float = 0.0
) -> Judgment:
    """The answer counts as wrong."""
    return Judgment(route, False, score, Reason(code, value, said, threshold))
