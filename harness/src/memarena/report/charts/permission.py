"""Draws D6: F1_PU of each memory with each reader, and the outcomes of DENY items."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.brief_rows import FEWEST_QUESTIONS
from memarena.report.charts.bars import stacked_shares
from memarena.report.charts.scatter import shortened
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.rows import ReportRow, backend_name, reader_name, row_name
from memarena.scoring.figures import Permission

NAMES, COLUMN, ROW, TOP = 180.0, 92.0, 34.0, 34.0
"""Width of the heat map's names and of a column, height of a row and of the head."""
DENSEST = 0.6
"""Opacity of a field at 100 percent, at which the figure in it is still readable."""
OUTCOMES = ("refused", "does not know", "other words", "leaked", "failed or empty")
"""Outcomes of a DENY item, in the order of the bar."""


def f1_pu_heat(rows: Sequence[ReportRow], key: str = "f1-pu") -> Figure | None:
    """Draw a heat map of F1_PU by memory and reader; None if fewer than two rows have it."""
    values = {_memory_and_reader(rows, row): value for row in rows if (value := f1_pu(row)) is not None}
    if len(values) < 2:
        return None
    memories = list(dict.fromkeys(memory for memory, _ in values))
    readers = list(dict.fromkeys(reader for _, reader in values))
    bottom = TOP + ROW * len(memories)
    described = "; ".join(f"{memory}, {reader}: {100 * value:.1f}" for (memory, reader), value in values.items())
    width = NAMES + COLUMN * len(readers) + 14
    title = "F1_PU of each memory and reader"
    drawing = Drawing(key, width, bottom + 12, title, f"In percent. {described}.")
    for column, reader in enumerate(readers):
        drawing.text(NAMES + COLUMN * (column + 0.5), TOP - 12, shortened(reader, 13), "legend", "middle")
    for line, memory in enumerate(memories):
        y = TOP + ROW * line
        drawing.text(14, y + ROW / 2 + 4, shortened(memory, 26), "legend")
        for column, reader in enumerate(readers):
            value = values.get((memory, reader))
            x, shown = NAMES + COLUMN * column, "n/a" if value is None else f"{100 * value:.1f}"
            drawing.rect(
                x, y, COLUMN - 2, ROW - 2, "heat", f"{memory}, {reader}: {shown}", opacity=DENSEST * (value or 0.0)
            )
            drawing.text(x + COLUMN / 2 - 1, y + ROW / 2 + 3, shown, "value" if value is not None else "tick", "middle")
    caption = (
        "Harmonic mean of facts withheld from those who may not know them and disclosed to those who may. The darker, "
        "the higher. A memory that tells half of the time, whoever asks, has 50."
    )
    return Figure(key, title, caption, drawing.render())


def deny_outcomes(rows: Sequence[ReportRow], key: str = "deny-outcomes") -> Figure | None:
    """Draw the outcomes of DENY items as stacked bars; rows with few such items are left out."""
    counted = [(row, counts) for row in rows if sum(counts := deny_counts(row)) >= FEWEST_QUESTIONS]
    return stacked_shares(
        key,
        "Answers on facts to be withheld",
        [(row_name(rows, row), counts) for row, counts in counted],
        OUTCOMES,
        "of the DENY items, %",
        "Refusing keeps a fact; not knowing keeps it from every asker. Other words are deflections and wrong values.",
    )


def f1_pu(row: ReportRow) -> float | None:
    """Return the row's F1_PU; None without one, or with fewer than FEWEST_QUESTIONS DENY or ALLOW items."""
    permission = row.scores.permission
    if permission is None or min(permission.deny - permission.unsaid, permission.allow) < FEWEST_QUESTIONS:
        return None
    return row.scores.metrics["D6"].value


def deny_counts(row: ReportRow) -> tuple[int, ...]:
    """Return the counts of DENY items in the order of :data:`OUTCOMES`; their sum is all DENY items."""
    permission: Permission | None = row.scores.permission
    if permission is None:
        return (0,) * len(OUTCOMES)
    labels = dict(permission.deny_labels)
    parts = [
        sum(labels.pop(label, 0) for label in names)
        for names in (("refuse",), ("dont_know",), ("disclose_wrong", "other"), ("disclosed",))
    ]
    return (*parts, sum(labels.values()))  # the labels that are left: failures, and answers that say nothing


def _memory_and_reader(rows: Sequence[ReportRow], row: ReportRow) -> tuple[str, str]:
    several_runs = len({other.run for other in rows}) > 1
    return backend_name(rows, row) + (f" (run {row.run})" if several_runs else ""), reader_name(row)
