"""Builds the table of scores over golds in text, corrected for the error rates of the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memarena.report.figures import percent, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns
from memarena.scoring.figures import JudgeError
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS

TITLE = "Judge error"


def judge_error_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the share right over golds in text of each row, as judged and corrected; None if no row has such golds."""
    errors = [(row, error) for row in rows if (error := row.scores.judge_error) is not None]
    if not errors:
        return None
    columns = [
        *lead_columns(rows),
        Column("n", "answers to questions with golds in text, headline seeds"),
        Column("as judged", "share right, percent"),
        Column("may be", "corrected for the judge's two error rates (Rogan and Gladen 1978), percent"),
        Column("95% interval", "of the corrected share: sampling of egos, or of questions, and of the two rates"),
    ]
    body = [[*lead_cells(rows, row), *_cells(error)] for row, error in errors]
    rows_with_errors = [row for row, _ in errors]
    return section(TITLE, columns, body, _notes(errors), breaks=breaks(rows_with_errors))


def rates_in_words(error: JudgeError) -> str:
    """Return both error rates of the judge in words."""
    counts = error.rates
    return (
        f"the judge calls {100 * counts.false_reject_rate:.1f}% of right answers wrong and "
        f"{100 * counts.false_accept_rate:.1f}% of wrong ones right"
    )


def _cells(error: JudgeError) -> list[Cell]:
    return [
        whole(error.answers),
        replace(percent(error.observed), questions=error.answers),
        replace(percent(error.corrected), questions=error.answers),
        Cell(f"{100 * error.low:.1f}–{100 * error.high:.1f}", questions=error.answers),
    ]


def _notes(errors: Sequence[tuple[ReportRow, JudgeError]]) -> list[str]:
    """Return notes on the error rates of the judge, and on rows to which they do not fit."""
    first = errors[0][1]
    counts = first.rates
    notes = [
        f"on golds in text {rates_in_words(first)} ({counts.right_called_wrong} of {counts.right}, "
        f"{counts.wrong_called_right} of {counts.wrong}; judge version {counts.judge_version}, docs/judging.md); "
        "on other data these rates may differ"
    ]
    if any(e.clusters is not None and e.clusters < FEWEST_CLUSTERS for _, e in errors):
        notes.append(f"fewer than {FEWEST_CLUSTERS} egos: these intervals are too narrow to rely on")
    if unfit := [row.scores.label for row, e in errors if not e.fits]:
        notes.append(f"{', '.join(unfit)}: these rates cannot give the share as judged; they do not hold here")
    return notes
