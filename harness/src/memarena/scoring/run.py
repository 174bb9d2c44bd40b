"""Scores a run: from its facts and verdicts to questions, cells and rows. Pure: the same log gives the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memarena.log.records import Cell, Outcome, Verdict
from memarena.scoring.baselines import JudgeAnswer, chance_by_dimension, compute_baselines, grep_share
from memarena.scoring.evidence import errors, retrieval
from memarena.scoring.facts import RunFacts
from memarena.scoring.formulas import sample_sd
from memarena.scoring.metrics import cell_metrics, count
from memarena.scoring.privacy import permission
from memarena.scoring.questions import VerdictKey, score_questions
from memarena.scoring.results import (
    Baseline,
    CellScores,
    Counts,
    Failure,
    QuestionScore,
    RowScores,
    RunScores,
    Score,
)
from memarena.scoring.slices import FAMILY_ORDER, slices
from memarena.scoring.timing import floor, ingest_cost, latency

STOCHASTIC_SEEDS = ("s2", "s3", "s4")
"""Seeds of the headline (T = 0.3); s1 (T = 0) stands apart."""


@dataclass(frozen=True)
class ScoredRun:
    """A run with every question settled and every figure computed."""

    questions: tuple[QuestionScore, ...]
    scores: RunScores


def score_run(facts: RunFacts, more_verdicts: Iterable[Verdict], judge: str, judge_answer: JudgeAnswer) -> ScoredRun:
    """Score a run.

    Args:
        facts: the run, from its log.
        more_verdicts: verdicts made since that are not in the log; they come after those of the log.
        judge: name of the judge whose verdicts count. Of several on one answer, the last counts.
        judge_answer: the same judge as a function, for the baselines.
    """
    verdicts = _verdicts_by(facts, more_verdicts, judge)
    questions = tuple(score_questions(facts, verdicts, judge))
    by_cell: dict[str, list[QuestionScore]] = {}
    for question in questions:
        by_cell.setdefault(question.cell_id, []).append(question)
    baselines = compute_baselines(facts.questions.values(), facts.evidence, judge_answer)
    rows = tuple(_row(facts, cells, by_cell, baselines) for cells in _rows_of(facts.manifest.cells))
    used = _used(questions, facts, verdicts)
    typed = [v for v in used if v.route != "token_f1"]
    manifest = facts.manifest
    scores = RunScores(
        run_id=facts.started.run_id,
        started_at=facts.started.started_at,
        ended=facts.ended.reason if facts.ended else "running",
        dataset=manifest.dataset,
        protocol=manifest.protocol,
        readers=manifest.readers,
        memarena_version=manifest.versions.memarena,
        judge=judge,
        judge_versions=tuple(sorted({v.judge_version for v in used})),
        typed_share=len(typed) / len(used) if used else None,
        question_filter=manifest.question_filter,
        planned=_planned(facts),
        families=_families(facts),
        segments=facts.segments,
        floor=floor(facts),
        rows=rows,
        baselines=(*baselines, *_grep_baselines(rows, by_cell)),
        problems=tuple(facts.problems),
    )
    return ScoredRun(questions, scores)


def _verdicts_by(facts: RunFacts, more: Iterable[Verdict], judge: str) -> Mapping[VerdictKey, Verdict]:
    own = (v for v in (*facts.verdicts, *more) if v.judge == judge and v.repeat == 0)
    return {(v.cell_id, v.instance_id, v.attempt): v for v in own}


def _used(questions: Sequence[QuestionScore], facts: RunFacts, verdicts: Mapping[VerdictKey, Verdict]) -> list[Verdict]:
    """The verdicts that settled a question."""
    found = []
    for question in questions:
        attempts = facts.attempts.get((question.cell_id, question.instance_id))
        if attempts and question.route in ("value", "token_f1", "llm"):
            verdict = verdicts.get((question.cell_id, question.instance_id, attempts[-1].record.attempt))
            found += [verdict] if verdict else []
    return found


# ------------------------------------------------------------------ rows


def _rows_of(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that differ in their seed only, in the order of the manifest."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(row_key(cell), []).append(cell)
    return list(groups.values())


def row_key(cell: Cell) -> str:
    """What a cell shares with those of other seeds."""
    reading = cell.reading.model_copy(update={"temperature": 0.0, "seed": 0})
    return cell.model_copy(update={"cell_id": "", "seed_label": "", "reading": reading}).model_dump_json()


def _row(
    facts: RunFacts,
    cells: Sequence[Cell],
    by_cell: Mapping[str, Sequence[QuestionScore]],
    baselines: Sequence[Baseline],
) -> RowScores:
    first = cells[0]
    scored = [_cell(cell, by_cell.get(cell.cell_id, ()), baselines) for cell in cells]
    headline = [c for c in scored if c.seed_label in STOCHASTIC_SEEDS] or scored
    greedy = next((c for c in scored if c.seed_label not in STOCHASTIC_SEEDS and c not in headline), None)
    questions = [q for c in headline for q in by_cell.get(c.cell_id, ())]
    metrics = _over_seeds(headline)
    reader = next((r for r in facts.manifest.readers if r.name == first.reader), None)
    described = next((facts.described[c.cell_id] for c in cells if c.cell_id in facts.described), None)
    return RowScores(
        label=first.cell_id.removesuffix(f"/{first.seed_label}"),
        backend=first.backend,
        backend_version=described.version if described else None,
        options=dict(sorted(first.backend_options.items())),
        reader=first.reader,
        reading=first.reading,
        diagnostic=first.diagnostic,
        real_reader=reader.is_real_reader if reader else True,
        timed=first.timing,
        headline_seeds=tuple(c.seed_label for c in headline),
        counts=_sum_counts([c.counts for c in headline]),
        metrics=metrics,
        greedy=greedy.metrics if greedy else None,
        cells=tuple(scored),
        slices=slices(questions),
        permission=permission(questions, metrics, len(headline)),
        retrieval=retrieval(questions),
        errors=errors(questions),
        latency=latency(questions),
        ingest=ingest_cost([facts.ingests[c.cell_id] for c in cells if c.cell_id in facts.ingests]),
        failures=_failures(questions),
        after_return_calls=sum(facts.after_return.get(c.cell_id, 0) for c in cells),
        routes=dict(sorted(Counter(q.route for q in questions if q.route is not None).items())),
    )


def _cell(cell: Cell, questions: Sequence[QuestionScore], baselines: Sequence[Baseline]) -> CellScores:
    return CellScores(
        cell_id=cell.cell_id,
        seed_label=cell.seed_label,
        temperature=cell.reading.temperature,
        counts=count(questions),
        metrics=cell_metrics(questions, chance_by_dimension(baselines, grep_share(questions))),
    )


def _over_seeds(cells: Sequence[CellScores]) -> dict[str, Score]:
    """Mean over seeds with the sample standard deviation; a range where any seed has only a range."""
    merged: dict[str, Score] = {}
    for name in cells[0].metrics:
        scores = [c.metrics[name] for c in cells]
        values = [s.value for s in scores if s.value is not None]
        exact = len(values) == len(scores)
        merged[name] = Score(
            value=_mean(values) if exact else None,
            low=_mean([s.low for s in scores if s.low is not None]),
            high=_mean([s.high for s in scores if s.high is not None]),
            sd=sample_sd(values) if exact else None,
            seeds=len(scores),
        )
    return merged


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _sum_counts(counts: Sequence[Counts]) -> Counts:
    names = ("planned", "correct", "wrong", "backend_failed", "infra_failed")
    return Counts(**{name: sum(getattr(c, name) for c in counts) for name in names})


def _failures(questions: Sequence[QuestionScore]) -> tuple[Failure, ...]:
    """Failed questions by cause, the most frequent first."""
    asked = sum(q.outcome is not None for q in questions)
    causes = Counter(
        (q.outcome, q.why) for q in questions if q.outcome in (Outcome.BACKEND_FAILED, Outcome.INFRA_FAILED)
    )
    ordered = sorted(causes.items(), key=lambda item: (-item[1], str(item[0])))
    return tuple(
        Failure(
            outcome="backend_failed" if outcome is Outcome.BACKEND_FAILED else "infra_failed",
            cause=why,
            count=n,
            share=n / asked,
        )
        for (outcome, why), n in ordered
    )


# ------------------------------------------------------------------ the run as a whole


def _planned(facts: RunFacts) -> dict[str, int]:
    counts = Counter(q.instance.dimension.value for q in facts.questions.values())
    return dict(sorted(counts.items()))


def _families(facts: RunFacts) -> dict[str, int]:
    counts = Counter(q.instance.family.value for q in facts.questions.values())
    return {family: counts[family] for family in FAMILY_ORDER if counts[family]}


def _grep_baselines(rows: Sequence[RowScores], by_cell: Mapping[str, Sequence[QuestionScore]]) -> list[Baseline]:
    """Grep over what each backend retrieved; the reader plays no part, so one line per backend is enough."""
    found: dict[str, Baseline] = {}
    for row in rows:
        share = grep_share(by_cell.get(row.cells[0].cell_id, ()))
        if share is not None and row.backend not in found:
            found[row.backend] = Baseline(
                name="grep", scores={"D1": share}, detail=f"over what {row.backend} retrieved"
            )
    return list(found.values())
