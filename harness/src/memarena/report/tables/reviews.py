"""Builds the table of reviews of answers and of their disagreement with the judge."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import whole
from memarena.report.layout import Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns

TITLE = "Reviews of answers"


def reviews_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the counts of reviews by row; None if there are none."""
    reviewed_rows = [(row, counts) for row in rows if (counts := row.reviews) is not None]
    if not reviewed_rows:
        return None
    rows_with_reviews = [row for row, _ in reviewed_rows]
    columns = [
        *lead_columns(rows_with_reviews),
        Column("people", "who reviewed an answer"),
        Column("reviewed", "answers with a star, a note or a label, all seeds"),
        Column("starred", "answers with a star"),
        Column("labelled", "answers of which a person states what is right"),
        Column("disputed", "of those, answers that a person labels otherwise than the judge"),
        Column("wrong → right", "the judge says wrong, the person right"),
        Column("right → wrong", "the judge says right, the person wrong"),
        Column("behaviour", "D6: another behaviour than the judge's"),
    ]
    body = [
        [
            *lead_cells(rows_with_reviews, row),
            *map(
                whole,
                (
                    counts.reviewers, counts.reviewed, counts.starred, counts.labelled, counts.disputed,
                    counts.right_called_wrong, counts.wrong_called_right, counts.other_behaviour,
                ),
            ),
        ]
        for row, counts in reviewed_rows
    ]  # fmt: skip
    notes = ["reviewers chose the answers and saw the verdicts: counts, from which no error rate of the judge follows"]
    if earlier := sum(counts.earlier_attempts for _, counts in reviewed_rows):
        notes.append(f"{earlier} reviews of answers that a later attempt replaced are not counted")
    return section(TITLE, columns, body, notes, breaks=breaks(rows_with_reviews))
