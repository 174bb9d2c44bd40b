"""The judge of a run as a record: its model and prompts, who decided how often, how many questions wait for it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memarena.log.records import JudgeTask, Record

Decider = Literal["model", "typed_values", "token_f1", "labels"]
"""What a verdict rests on. ``labels``: the deterministic labels of D6, in place of a judge that labels behaviour."""


class JudgeModel(Record):
    """A model behind verdicts, as it was asked."""

    model: str
    temperature: float | None
    seed: int | None
    """None: no seed was sent."""
    prompts_sha256: dict[JudgeTask, str]
    """Of the prompt files in use, by what was asked."""


class Judging(Record):
    """Where the verdicts that decided a run's questions come from. Counts are of questions, cells apart."""

    models: tuple[JudgeModel, ...] = ()
    """Empty for a judge without a model."""
    decided: dict[Decider, int] = Field(default_factory=dict)
    handed_over: int = 0
    """Of them, those that the rules made in place of the judge's model."""
    unjudged: int = 0
    """Questions that were answered and wait for this judge's verdict; each ends as ``infra_failed`` until then."""
