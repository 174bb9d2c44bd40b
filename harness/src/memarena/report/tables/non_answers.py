"""Builds the table of answers that say nothing, by reason."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.log.records import NonAnswer
from memarena.report.figures import percent, whole
from memarena.report.layout import Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns

_REASONS: tuple[tuple[NonAnswer, str, str], ...] = (
    ("empty", "empty", "no text at all"),
    ("cut", "cut", "cut off by the limit of tokens before the answer was whole"),
    ("filtered", "filtered", "held back by the server's filter, or refused in a separate field"),
    ("reasoning", "reasoning", "every token spent on reasoning"),
)


def non_answer_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the counts of answers that say nothing, by reason; None if there are none."""
    if not any(row.scores.non_answers for row in rows):
        return None
    columns = [
        *lead_columns(rows),
        Column("answers", "that arrived"),
        *(Column(name, words) for _, name, words in _REASONS),
        Column("share", "of the answers that say nothing, or not all, percent"),
    ]
    body = []
    for row in rows:
        counts, use = row.scores.non_answers, row.scores.reader_use
        answers = use.answers if use is not None else 0
        body.append(
            [
                *lead_cells(rows, row),
                whole(answers),
                *(whole(counts.get(reason, 0)) for reason, _, _ in _REASONS),
                percent(sum(counts.values()) / answers if answers else None),
            ]
        )
    notes = ("what says nothing counts as it is: wrong where an answer was due, and as no withheld secret in D6",)
    return section("Answers that say nothing", columns, body, notes, breaks=breaks(rows))
