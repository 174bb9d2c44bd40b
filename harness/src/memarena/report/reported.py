"""Everything of a run that a report is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memarena.log.records import Manifest
from memarena.report.costs import RowCosts, run_costs
from memarena.report.provenance import Provenance, provenance_of
from memarena.report.stories import Story
from memarena.scoring.facts import RunFacts
from memarena.scoring.results import QuestionScore, RunScores
from memarena.scoring.run import ScoredRun


@dataclass(frozen=True)
class ReportedRun:
    """A run as a report sees it. Scores alone make a report without provenance, costs and stories."""

    scores: RunScores
    provenance: Provenance | None = None
    costs: tuple[RowCosts, ...] = ()
    questions: tuple[QuestionScore, ...] = ()
    """Single questions, for how times are spread."""
    stories: tuple[Story, ...] = ()
    """A sample of questions with everything that happened to them."""


def reported(facts: RunFacts, scored: ScoredRun, stories: Iterable[Story] = ()) -> ReportedRun:
    """A run with all that its facts and scores give."""
    manifest: Manifest = facts.manifest
    return ReportedRun(
        scores=scored.scores,
        provenance=provenance_of(facts.started.run_id, facts.started.started_at, manifest),
        costs=run_costs(facts, scored.scores.rows, scored.questions),
        questions=scored.questions,
        stories=tuple(stories),
    )
