"""Scores a run: computes the scores of its questions, cells and rows from its facts and verdicts.

The result depends on these alone, not on the machine or the time. The order of steps: questions and baselines, rows,
and what is over the run as a whole.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena.judging.judgments import Judgments
from memarena.judging.kinds import kind_of
from memarena.log.records import Cell, Question
from memarena.scoring.baselines import compute_baselines, grep_share, question_only
from memarena.scoring.breakdowns import FAMILY_ORDER
from memarena.scoring.deciding_verdicts import deciding_verdicts, failures_of, judge_provenance
from memarena.scoring.questions import RunBoth, one_after_the_other, score_all
from memarena.scoring.results import Baseline, QuestionScore, RowScores, RunScores
from memarena.scoring.rows import RowInputs, row_label, rows_of, score_row
from memarena.scoring.run_facts import RunFacts
from memarena.scoring.source_categories import categories
from memarena.scoring.timing import floor
from memarena.scoring.uncertainty.bootstrap import draw_egos
from memarena.scoring.uncertainty_records import RESAMPLES


@dataclass(frozen=True)
class ScoredRun:
    """Scores of a run: of every question, and all figures."""

    questions: tuple[QuestionScore, ...]
    scores: RunScores


def score_run(
    facts: RunFacts,
    judgments: Judgments,
    *,
    resamples: int = RESAMPLES,
    run_both: RunBoth = one_after_the_other,
) -> ScoredRun:
    """Score a run.

    Args:
        facts: the run, from its log.
        judgments: the verdicts of the judge that counts.
        resamples: draws of egos for the intervals; 0 leaves intervals and variances out.
        run_both: runs two halves of the work, first of the questions, then of the rows.
    """
    scored, computed = score_all(
        facts,
        judgments,
        lambda: compute_baselines(_decided_by_rules(facts), facts.evidence),
        run_both,
    )
    questions = tuple(scored)
    by_cell = _counted_by_cell(questions, facts, judgments)
    baselines = (*computed, *_question_only_baselines(facts, by_cell))
    manifest = facts.manifest
    draws = draw_egos(questions, manifest.dataset.sha256, resamples) if resamples else None
    source_categories = categories(facts.questions.values())
    material = RowInputs(facts, by_cell, baselines, judgments, draws, source_categories)
    rows = _rows(material, rows_of(manifest.cells), run_both)
    deciding = deciding_verdicts(questions, facts, judgments)
    scores = RunScores(
        run_id=facts.started.run_id,
        started_at=facts.started.started_at,
        ended=facts.ended.reason if facts.ended else "running",
        dataset=manifest.dataset,
        protocol=manifest.protocol,
        readers=manifest.readers,
        memarena_version=manifest.versions.memarena,
        judge=judgments.judge,
        judge_versions=deciding.versions,
        typed_share=deciding.typed_share,
        question_filter=manifest.question_filter,
        planned=_counts_by_dimension(facts),
        families=_counts_by_family(facts),
        segments=facts.segments,
        floor=floor(facts),
        rows=rows,
        baselines=(*baselines, *_grep_baselines(rows, by_cell)),
        problems=tuple(facts.problems),
        judge_failures=failures_of(deciding, judgments),
        judge_repeats=judgments.repeated,
        handed_over_share=deciding.handed_over_share,
        judging=judge_provenance(deciding, judgments),
    )
    return ScoredRun(questions, scores)


def _counted_by_cell(
    questions: Sequence[QuestionScore], facts: RunFacts, judgments: Judgments
) -> dict[str, list[QuestionScore]]:
    """Group by cell the questions that count in figures: those whose gold the judge can judge."""
    left_out = {name for name, question in facts.questions.items() if judgments.leaves(question.instance.gold)}
    by_cell: dict[str, list[QuestionScore]] = {}
    for question in questions:
        if question.instance_id not in left_out:
            by_cell.setdefault(question.cell_id, []).append(question)
    return by_cell


def _rows(material: RowInputs, groups: Sequence[Sequence[Cell]], run_both: RunBoth) -> tuple[RowScores, ...]:
    """Score a row for each group of cells; even and odd groups are the two halves of ``run_both``."""
    ahead, behind = run_both(
        lambda: [score_row(material, cells) for cells in groups[::2]],
        lambda: [score_row(material, cells) for cells in groups[1::2]],
    )
    return tuple(row for pair in itertools.zip_longest(ahead, behind) for row in pair if row is not None)


def _question_only_baselines(facts: RunFacts, by_cell: Mapping[str, Sequence[QuestionScore]]) -> list[Baseline]:
    """Return a baseline for each reader that has a diagnostic row without any context."""
    by_reader: dict[str, Baseline] = {}
    for cells in rows_of(facts.manifest.cells):
        if not cells[0].diagnostic:
            continue
        scores = question_only([q for c in cells for q in by_cell.get(c.cell_id, ())])
        if scores is not None:
            reader = cells[0].reader
            by_reader.setdefault(
                reader,
                Baseline(
                    name="question only", scores=scores, detail=f"as {row_label(cells[0])} answered", reader=reader
                ),
            )
    return list(by_reader.values())


# ------------------------------------------------------------------ the run as a whole


def _decided_by_rules(facts: RunFacts) -> list[Question]:
    """Return the questions that rules can judge, as baselines are judged without a model."""
    return [q for q in facts.questions.values() if kind_of(q).has_rules]


def _counts_by_dimension(facts: RunFacts) -> dict[str, int]:
    counts = Counter(q.instance.dimension.value for q in facts.questions.values())
    return dict(sorted(counts.items()))


def _counts_by_family(facts: RunFacts) -> dict[str, int]:
    counts = Counter(q.instance.family.value for q in facts.questions.values())
    return {family: counts[family] for family in FAMILY_ORDER if counts[family]}


def _grep_baselines(rows: Sequence[RowScores], by_cell: Mapping[str, Sequence[QuestionScore]]) -> list[Baseline]:
    """Return grep over each backend's items, one baseline per backend, since the reader does not matter."""
    by_backend: dict[str, Baseline] = {}
    for row in rows:
        share = grep_share(by_cell.get(row.cells[0].cell_id, ()))
        if share is not None and row.backend not in by_backend:
            by_backend[row.backend] = Baseline(
                name="grep", scores={"D1": share}, detail=f"over what {row.backend} retrieved"
            )
    return list(by_backend.values())
