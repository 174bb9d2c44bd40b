"""Builds the table of scores by category of the benchmark from which a data set was imported."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, few_egos, percent, score, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, lead_cells, lead_columns, trace
from memarena.scoring.figures import SourcePart
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS

TITLE = "Source categories"
_WHAT = {"category": "LoCoMo", "ability": "BEAM", "question_type": "question type", "kind": "kind of question"}
"""Title of the column by the key of metadata that holds a question's category."""


def source_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the share right by row and category, with counts and intervals; a rule precedes each row."""
    body: list[list[Cell]] = []
    rules: list[int] = []
    sources = [(row, source) for row in rows if (source := row.scores.source) is not None]
    for row, source in sources:
        rules += [len(body)] if body else []
        body += [[*lead_cells(rows, row), Cell(part.key), *_cells(part)] for part in source.parts]
    if not sources:
        return None
    parts = [part for _, source in sources for part in source.parts]
    by = sources[0][1].by
    columns = [
        *lead_columns(rows),
        Column(_WHAT.get(by, by), align="left"),
        Column("n", "answers, seeds pooled"),
        Column("right", "share right, percent"),
        Column("95% interval", "bootstrap over egos"),
        Column(
            "rubric", "mean of 1 (yes), 0.5 (partly) and 0 (no) over a question's rubric, over all questions, percent"
        ),
        Column("as published", "share right by the golds as published, before corrections"),
    ]
    return section(TITLE, columns, body, _notes(by, parts), breaks=rules, trace=trace(rows))


def _cells(part: SourcePart) -> list[Cell]:
    interval = part.interval
    return [
        whole(part.counts.asked),
        score(part.score, so_far=part.counts.missing > 0),
        NA if interval is None else Cell(f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"),
        percent(part.rubric),
        percent(part.published),
    ]


def _notes(by: str, parts: Sequence[SourcePart]) -> list[str]:
    notes = []
    if by == "category":
        notes.append("most publish categories 1 to 4, without the adversarial ones, which are right when declined")
    if with_few_egos := few_egos((part.key, part.interval) for part in parts):
        notes.append(
            f"fewer than {FEWEST_CLUSTERS} egos behind {with_few_egos}: these intervals are too narrow to rely on"
        )
    return notes
