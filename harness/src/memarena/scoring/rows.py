"""Scores the rows of a run: combines cells that differ only in their seed into all figures that tables show of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memarena.judging.judgments import Judgments
from memarena.log.measuring import CpuLoad
from memarena.log.records import OWN_MODEL, Cell, IsolationGrade, NonAnswer, Outcome
from memarena.scoring.answerable import answerable_families
from memarena.scoring.baselines import chance_by_dimension, grep_share
from memarena.scoring.breakdowns import slices
from memarena.scoring.deletion import deletion
from memarena.scoring.figures import Counts, Failure, ReaderUse, Retrieval, Score
from memarena.scoring.formulas import sample_sd
from memarena.scoring.judge_error import text_judge_error
from memarena.scoring.kept import retention
from memarena.scoring.metrics import cell_metrics, count
from memarena.scoring.permission import permission
from memarena.scoring.results import (
    MANY_FAILED,
    MANY_NON_ANSWERS,
    MANY_UNSUPPORTED,
    Baseline,
    CellScores,
    Mark,
    QuestionScore,
    RowScores,
    is_busy,
)
from memarena.scoring.retrieval import errors, retrieval
from memarena.scoring.run_facts import RunFacts
from memarena.scoring.source_categories import Categories, source_scores
from memarena.scoring.tally import Array, Tally, tally
from memarena.scoring.timing import floor, ingest_cost, latency
from memarena.scoring.uncertainty.bootstrap import Draws
from memarena.scoring.uncertainty.intervals import intervals, judge_spread, variances
from memarena.scoring.uncertainty_records import Interval, Variance

STOCHASTIC_SEEDS = ("s2", "s3", "s4")
"""Labels of the seeds whose mean is the headline (T = 0.3); seed s1 (T = 0) is reported separately."""
_FAILED: dict[Outcome, Literal["backend_failed", "infra_failed", "reader_not_applicable"]] = {
    Outcome.BACKEND_FAILED: "backend_failed",
    Outcome.INFRA_FAILED: "infra_failed",
    Outcome.READER_NOT_APPLICABLE: "reader_not_applicable",
}


def rows_of(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Group cells that differ only in their seed, in the order of the manifest."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(row_key(cell), []).append(cell)
    return list(groups.values())


def row_key(cell: Cell) -> str:
    """Return the key of a cell's row: the cell as JSON without its id, seed and temperature."""
    reading = cell.reading.model_copy(update={"temperature": 0.0, "seed": 0})
    return cell.model_copy(update={"cell_id": "", "seed_label": "", "reading": reading}).model_dump_json()


@dataclass(frozen=True)
class RowInputs:
    """All that is needed to score rows."""

    facts: RunFacts
    by_cell: Mapping[str, Sequence[QuestionScore]]
    """By cell, the questions that count in figures."""
    baselines: Sequence[Baseline]
    judgments: Judgments
    draws: Draws | None
    """Bootstrap draws of egos; None: no intervals are computed."""
    categories: Categories


@dataclass(frozen=True)
class _Drawn:
    """A cell's sums per ego and its figures under every draw."""

    sums: Tally
    figures: Mapping[str, Array]


@dataclass(frozen=True)
class _Headline:
    """The seeds whose mean is the row's headline, with what is computed over them."""

    cells: Sequence[CellScores]
    questions: Sequence[QuestionScore]
    metrics: dict[str, Score]
    sums: Sequence[Tally]
    """Sums of each seed; empty if no intervals are computed."""
    intervals: dict[str, Interval]


@dataclass(frozen=True)
class _Conditions:
    """The conditions under which a row's answers were given, from which its marks follow."""

    version: str | None
    isolation: IsolationGrade | None
    own_model: bool
    use: ReaderUse | None
    unread: int
    """Number of failed questions for which no answer arrived."""
    silent: Mapping[NonAnswer, int]
    """Answers that say nothing, by reason."""
    load: CpuLoad | None


def score_row(material: RowInputs, cells: Sequence[Cell]) -> RowScores:
    """Score a row from cells that differ only in their seed."""
    facts, first = material.facts, cells[0]
    draws_by_cell = {c.cell_id: _drawn(material, c) for c in cells}
    cell_scores = [_cell(material, c, draws_by_cell[c.cell_id]) for c in cells]
    headline = _headline(material, cell_scores, draws_by_cell)
    greedy = next((c for c in cell_scores if c.seed_label not in STOCHASTIC_SEEDS and c not in headline.cells), None)
    questions, metrics = headline.questions, headline.metrics
    counts = _sum_counts([c.counts for c in headline.cells])
    conditions = _conditions(facts, cells, questions)
    evidence = retrieval(questions)
    reader = next((r for r in facts.manifest.readers if r.name == first.reader), None)
    ingests = [facts.ingests[c.cell_id] for c in cells if c.cell_id in facts.ingests]
    row = RowScores(
        label=row_label(first),
        backend=first.backend,
        backend_version=conditions.version,
        options=dict(sorted(first.backend_options.items())),
        reader=first.reader,
        reading=first.reading,
        diagnostic=first.diagnostic,
        own_model=conditions.own_model,
        real_reader=reader.is_real_reader if reader else True,
        isolation=conditions.isolation,
        marks=_marks(conditions, counts.asked, evidence, timed=first.timing),
        without_answer=conditions.unread,
        non_answers=dict(sorted(conditions.silent.items())),
        reader_use=conditions.use,
        load=conditions.load,
        timed=first.timing,
        headline_seeds=tuple(c.seed_label for c in headline.cells),
        counts=counts,
        metrics=metrics,
        greedy=greedy.metrics if greedy else None,
        cells=tuple(cell_scores),
        slices=slices(questions),
        source=source_scores(material.categories, questions, facts, material.judgments, material.draws),
        judge_error=text_judge_error(questions, material.draws) if material.judgments.is_rules else None,
        permission=permission(questions, metrics, len(headline.cells), headline.intervals.get("J")),
        answerable=answerable_families(questions, material.draws),
        retrieval=evidence,
        errors=errors(questions),
        latency=latency(questions, floor(facts)),
        ingest=ingest_cost(ingests, timed=first.timing),
        kept=retention(ingests, questions),
        failures=_failures(questions),
        after_return_calls=sum(facts.after_return.get(c.cell_id, 0) for c in cells),
        budget_refusals=sum(facts.budget_refusals.get(c.cell_id, 0) for c in cells),
        deletion=deletion([record for c in cells for record in facts.deletions.get(c.cell_id, ())]),
        routes=dict(sorted(Counter(q.route for q in questions if q.route is not None).items())),
        intervals=headline.intervals,
        variances=_variances(material, headline),
    )
    return _without_figures(row) if _lacks_evidence(first, questions, facts) else row


def _headline(
    material: RowInputs, cell_scores: Sequence[CellScores], draws_by_cell: Mapping[str, _Drawn | None]
) -> _Headline:
    """Return the headline of a row: over its stochastic seeds, or over all seeds if it has none of these."""
    cells = [c for c in cell_scores if c.seed_label in STOCHASTIC_SEEDS] or cell_scores
    metrics = _over_seeds(cells)
    seeds = [drawn for c in cells if (drawn := draws_by_cell[c.cell_id]) is not None]
    sums = [drawn.sums for drawn in seeds]
    return _Headline(
        cells=cells,
        questions=[q for c in cells for q in material.by_cell.get(c.cell_id, ())],
        metrics=metrics,
        sums=sums,
        intervals=intervals(metrics, sums, [drawn.figures for drawn in seeds]) if seeds else {},
    )


def _conditions(facts: RunFacts, cells: Sequence[Cell], questions: Sequence[QuestionScore]) -> _Conditions:
    described = next((facts.described[c.cell_id] for c in cells if c.cell_id in facts.described), None)
    isolation = described.isolation if described else None
    # One cell without isolation marks the row, also if it has isolation since it was resumed.
    return _Conditions(
        version=described.version if described else None,
        isolation="none" if any(c.cell_id in facts.not_isolated for c in cells) else isolation,
        own_model=described is not None and OWN_MODEL in described.capabilities,
        use=_reader_use(questions),
        unread=sum(q.outcome in _FAILED and q.reader_calls is None for q in questions),
        silent=Counter(q.non_answer for q in questions if q.non_answer),
        load=_load(facts, cells),
    )


def _lacks_evidence(cell: Cell, questions: Sequence[QuestionScore], facts: RunFacts) -> bool:
    """Whether a diagnostic that gets the evidence, such as Oracle, got none and returned nothing."""
    retrievals = [q.retrieved for q in questions if q.retrieved is not None]
    if (
        not (cell.send_evidence and cell.projection == "ego")
        or not retrievals
        or any(retrieved.items for retrieved in retrievals)
    ):
        return False
    return not any(facts.questions[q.instance_id].instance.evidence_session_ids for q in questions)


def _without_figures(row: RowScores) -> RowScores:
    """Set every figure of a row's answers to n/a, since its answers with evidence are not known."""
    none = dict.fromkeys(row.metrics, Score())
    cells = tuple(cell.model_copy(update={"metrics": none, "intervals": {}}) for cell in row.cells)
    update: dict[str, object] = {
        "marks": (*row.marks, "no_evidence"),
        "metrics": none,
        "cells": cells,
        "slices": (),
        "answerable": (),
        "intervals": {},
        "variances": (),
        **dict.fromkeys(("greedy", "source", "judge_error", "permission", "errors"), None),
    }
    return row.model_copy(update=update)


def row_label(cell: Cell) -> str:
    """Return a cell's name without its seed."""
    return cell.cell_id.removesuffix(f"/{cell.seed_label}")


def _drawn(material: RowInputs, cell: Cell) -> _Drawn | None:
    questions = material.by_cell.get(cell.cell_id, ())
    if material.draws is None:
        return None
    sums = tally(questions, material.draws.rows)
    return _Drawn(sums, material.draws.figures(sums))


def _cell(material: RowInputs, cell: Cell, drawn: _Drawn | None) -> CellScores:
    questions = material.by_cell.get(cell.cell_id, ())
    chance = chance_by_dimension(material.baselines, cell.reader, grep_share(questions))
    metrics = cell_metrics(questions, chance, drawn.sums if drawn else None)
    return CellScores(
        cell_id=cell.cell_id,
        seed_label=cell.seed_label,
        temperature=cell.reading.temperature,
        counts=count(questions),
        metrics=metrics,
        intervals=intervals(metrics, [drawn.sums], [drawn.figures]) if drawn else {},
    )


def _variances(material: RowInputs, headline: _Headline) -> tuple[Variance, ...]:
    if not headline.sums:
        return ()
    judge_sds: Mapping[str, float] = {}
    if material.judgments.repeats:
        attempts = {key: tries[-1].record.attempt for key, tries in material.facts.attempts.items()}
        judge_sds = judge_spread(headline.cells, material.by_cell, attempts, material.judgments)
    return variances(headline.metrics, headline.intervals, headline.sums, judge_sds, material.judgments.repeated)


def _over_seeds(cells: Sequence[CellScores]) -> dict[str, Score]:
    """Average each figure over seeds, with the sample standard deviation; a range if any seed has only a range."""
    by_name: dict[str, Score] = {}
    for name in cells[0].metrics:
        scores = [c.metrics[name] for c in cells]
        values = [s.value for s in scores if s.value is not None]
        exact = len(values) == len(scores)
        by_name[name] = Score(
            value=_mean(values) if exact else None,
            low=_mean([s.low for s in scores if s.low is not None]),
            high=_mean([s.high for s in scores if s.high is not None]),
            sd=sample_sd(values) if exact else None,
            seeds=len(scores),
        )
    return by_name


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _sum_counts(counts: Sequence[Counts]) -> Counts:
    names = ("planned", "correct", "wrong", "backend_failed", "infra_failed", "reader_not_applicable")
    return Counts(**{name: sum(getattr(c, name) for c in counts) for name in names})


def _reader_use(questions: Sequence[QuestionScore]) -> ReaderUse | None:
    calls = [q.reader_calls for q in questions if q.reader_calls is not None]
    tokens = [q.reader_tokens for q in questions if q.reader_tokens is not None]
    if not calls:
        return None
    return ReaderUse(
        answers=len(calls), without_call=calls.count(0), calls=sum(calls) / len(calls), tokens=_mean(tokens)
    )


def _marks(conditions: _Conditions, asked_count: int, evidence: Retrieval | None, *, timed: bool) -> tuple[Mark, ...]:
    """Return the marks that the conditions of a row's answers give it."""
    use, load = conditions.use, conditions.load
    marks: list[Mark] = []
    if use is not None and use.without_call and not conditions.own_model:
        marks.append("without_reader")
    if asked_count and conditions.unread / asked_count > MANY_FAILED:
        marks.append("many_failed")
    if evidence is not None and (evidence.unsupported_claims or 0.0) > MANY_UNSUPPORTED:
        marks.append("unsupported_sources")
    if use is not None and sum(conditions.silent.values()) > MANY_NON_ANSWERS * use.answers:
        marks.append("many_non_answers")
    if conditions.isolation == "none":
        marks.append("not_isolated")
    if timed and load is not None and is_busy(load):
        marks.append("busy_machine")
    return tuple(marks)


def _load(facts: RunFacts, cells: Sequence[Cell]) -> CpuLoad | None:
    """Return the load of the cell in which other processes kept the CPUs busiest; None if the log has no load."""
    cell_ids = {cell.cell_id for cell in cells}
    loads = [phase.load for phase in facts.phases if phase.cell_id in cell_ids and phase.load is not None]

    def rank(load: CpuLoad) -> tuple[bool, float, float]:
        others, busy = (-1.0 if figure.value is None else figure.value for figure in (load.others, load.busy))
        return is_busy(load), others, busy

    return max(loads, key=rank, default=None)


def _failures(questions: Sequence[QuestionScore]) -> tuple[Failure, ...]:
    """Count failed questions by cause, the most frequent first."""
    asked_count = sum(q.outcome is not None for q in questions)
    causes = Counter((q.outcome, q.why) for q in questions if q.outcome is not None and q.outcome in _FAILED)
    by_count = sorted(causes.items(), key=lambda item: (-item[1], str(item[0])))
    return tuple(
        Failure(
            outcome=_FAILED[outcome],
            cause=cause,
            count=n,
            share=n / asked_count,
        )
        for (outcome, cause), n in by_count
    )
