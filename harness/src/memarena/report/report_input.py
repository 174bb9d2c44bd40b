"""Collects what a report needs of a run: scores, costs, provenance, traces, reviews, labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memarena.log.records import Manifest
from memarena.log.reviews import Review
from memarena.report.people import LabelledSample
from memarena.report.provenance import Provenance, provenance_of
from memarena.report.question_view.records import QuestionView
from memarena.report.reviews import RowReviews, row_reviews
from memarena.scoring.costs import RowCosts, run_costs
from memarena.scoring.results import QuestionScore, RunScores
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts


@dataclass(frozen=True)
class ReportInput:
    """A run as input of a report; all but ``scores`` may be left out, and then so are their sections of the report."""

    scores: RunScores
    provenance: Provenance | None = None
    costs: tuple[RowCosts, ...] = ()
    questions: tuple[QuestionScore, ...] = ()
    """Scores of single questions, for charts of the distribution of times."""
    traces: tuple[QuestionView, ...] = ()
    """Traces of a sample of questions, each with its answer in one cell."""
    reviews: tuple[RowReviews, ...] = ()
    """Counts of reviews for each row that has any."""
    people: tuple[LabelledSample, ...] = ()
    """Samples of answers that people labelled."""


def report_input(
    facts: RunFacts,
    scored: ScoredRun,
    traces: Iterable[QuestionView] = (),
    reviews: Iterable[Review] = (),
    people: Iterable[LabelledSample] = (),
) -> ReportInput:
    """Build the input of a report from a run's facts and scores, and optional traces, reviews and labelled samples."""
    manifest: Manifest = facts.manifest
    return ReportInput(
        scores=scored.scores,
        provenance=provenance_of(facts.started.run_id, facts.started.started_at, manifest),
        costs=run_costs(facts, scored.scores.rows, scored.questions),
        questions=scored.questions,
        traces=tuple(traces),
        reviews=row_reviews(scored, reviews),
        people=tuple(people),
    )
