"""Everything of a run that a report is made of."""

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
    """A run as a report needs it. Scores alone give a report without provenance, costs and traces."""

    scores: RunScores
    provenance: Provenance | None = None
    costs: tuple[RowCosts, ...] = ()
    questions: tuple[QuestionScore, ...] = ()
    """Single questions, for how times are spread."""
    traces: tuple[QuestionView, ...] = ()
    """Traces of a sample of questions, each with its answer in one cell."""
    reviews: tuple[RowReviews, ...] = ()
    """What people remarked on answers, for each row that has reviews."""
    people: tuple[LabelledSample, ...] = ()
    """Samples of answers that people labelled."""


def report_input(
    facts: RunFacts,
    scored: ScoredRun,
    traces: Iterable[QuestionView] = (),
    reviews: Iterable[Review] = (),
    people: Iterable[LabelledSample] = (),
) -> ReportInput:
    """A run with all that its facts and scores give."""
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
