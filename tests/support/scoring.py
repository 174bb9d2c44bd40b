"""Scores records in tests, with the same value judge as the commands."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.judging.judgments import Judgments
from memarena.log.records import AnyRecord
from memarena.scoring.run import ScoredRun, score_run
from memarena.scoring.run_facts import RunFacts, gather
from memarena.scoring.uncertainty_records import RESAMPLES


def score_facts(facts: RunFacts, judge: str = "value", resamples: int = RESAMPLES) -> ScoredRun:
    """Score a run by one judge's verdicts."""
    judgments = Judgments(judge, facts.verdicts, facts.buckets, facts.judging_failures, facts.evidence)
    return score_run(facts, judgments, resamples=resamples)


def score_records(records: Sequence[AnyRecord], judge: str = "value", resamples: int = RESAMPLES) -> ScoredRun:
    """Score records as a report does."""
    return score_facts(gather(records), judge, resamples)
