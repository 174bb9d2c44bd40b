"""Reads the measured error rates of the judge without a model, which reports print next to its scores."""

from __future__ import annotations

from functools import cache

from pydantic import model_validator

from memarena.judging.tables import toml_file
from memarena.log.records import Record

_TABLE = "error_rates.v1.toml"


class ErrorCounts(Record):
    """Answers labelled by people, and how many of them the judge got wrong."""

    judge_version: int
    """``JUDGE_VERSION`` of the judge that was measured."""
    right_called_wrong: int
    right: int
    """Answers that people called right."""
    wrong_called_right: int
    wrong: int
    """Answers that people called wrong."""

    @model_validator(mode="after")
    def _are_counts(self) -> ErrorCounts:
        if not (0 <= self.right_called_wrong <= self.right and 0 <= self.wrong_called_right <= self.wrong):
            raise ValueError("errors: expected 0 to as many as there are answers")
        if not (self.right and self.wrong):
            raise ValueError("right, wrong: expected at least one answer each")
        return self

    @property
    def false_reject_rate(self) -> float:
        """Share of the right answers that are called wrong."""
        return self.right_called_wrong / self.right

    @property
    def false_accept_rate(self) -> float:
        """Share of the wrong answers that are called right."""
        return self.wrong_called_right / self.wrong


@cache
def text_error_counts() -> ErrorCounts:
    """Return the errors on golds in text, from a blind test (``harness/judge_training/MODEL_CARD.text_gold.md``)."""
    return ErrorCounts.model_validate(toml_file(_TABLE)["text"])
