"""Draws accuracy over a breakdown: a line for each row over lag, or over the number of interfering facts."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.brief_rows import FEWEST_QUESTIONS
from memarena.report.charts.growth import end_tags
from memarena.report.charts.scale import Linear
from memarena.report.charts.scatter import LEGEND_ROW, legend_entry, series_of
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.rows import ReportRow, row_name
from memarena.report.tables.grid import breakdown_keys

WIDTH, SIDE = 460.0, 230.0
"""Width of a drawing, and height of the area within its axes."""
LEFT, TOP, RIGHT = 62.0, 14.0, 44.0
"""Margins of that area."""
Points = list[tuple[int, float, int]]
"""(index in the breakdown, percent right, questions asked): ``[(0, 81.2, 64), (1, 70.0, 40)]``."""


def accuracy_over(rows: Sequence[ReportRow], by: str, key: str, title: str, across: str, caption: str) -> Figure | None:
    """Draw the share right of each row over the keys of a breakdown, evenly spaced; None with fewer than two keys.

    A part that has only a range, because questions are unmeasured, or fewer than 5 questions has no mark.
    """
    keys = breakdown_keys(rows, by)
    lines = {row.tag: _points(row, by, keys) for row in rows}
    drawn_rows = [row for row in rows if len(lines[row.tag]) > 1]
    if not drawn_rows:
        return None
    description = "; ".join(
        f"{row_name(rows, row)}: {', '.join(f'{keys[i]} {v:.1f} (n {n})' for i, v, n in lines[row.tag])}"
        for row in drawn_rows
    )
    height = TOP + SIDE + 50 + LEGEND_ROW * ((len(drawn_rows) + 1) // 2)
    drawing = Drawing(key, WIDTH, height, title, f"Share right in percent, by {across}. {description}.")
    x = Linear(-0.3, len(keys) - 0.7, LEFT, WIDTH - RIGHT)
    y = Linear(0, 100, TOP + SIDE, TOP)
    _axes(drawing, x, y, keys, across)
    series = series_of(rows)
    for row in drawn_rows:
        shape, row_points = series[row.scores.backend], lines[row.tag]
        drawing.path([(x.at(i), y.at(v)) for i, v, _ in row_points], f"trend c{shape % 8}")
        for i, v, n in row_points:
            tooltip = f"{row_name(rows, row)}: {keys[i]}, {v:.1f}%, n {n}"
            drawing.marker(x.at(i), y.at(v), shape, hollow=row.scores.diagnostic, size=4, title=tooltip)
    for index, row in enumerate(drawn_rows):
        shape, hollow = series[row.scores.backend], row.scores.diagnostic
        legend_entry(drawing, index, TOP + SIDE + 62, row.tag, row_name(rows, row), shape, hollow=hollow)
    end_tags(drawing, {row.tag: (x.at(lines[row.tag][-1][0]), y.at(lines[row.tag][-1][1])) for row in drawn_rows})
    return Figure(key, title, caption, drawing.render())


def _points(row: ReportRow, by: str, keys: Sequence[str]) -> Points:
    slices = {
        s.key: s
        for s in row.scores.slices
        if s.by == by and s.score.value is not None and s.counts.asked >= FEWEST_QUESTIONS
    }
    parts = [(index, slices[key]) for index, key in enumerate(keys) if key in slices]
    return [(index, 100 * (part.score.value or 0.0), part.counts.asked) for index, part in parts]


def _axes(drawing: Drawing, x: Linear, y: Linear, keys: Sequence[str], across: str) -> None:
    for value in (0, 25, 50, 75, 100):
        drawing.line(x.start, y.at(value), x.end, y.at(value), "grid")
        drawing.text(x.start - 8, y.at(value) + 4, str(value), "tick", "end")
    for index, name in enumerate(keys):
        drawing.line(x.at(index), y.start, x.at(index), y.start + 4, "grid")
        drawing.text(x.at(index), y.start + 17, name, "tick", "middle")
    drawing.text((x.start + x.end) / 2, y.start + 36, across, "label", "middle")
    drawing.text(16, (y.start + y.end) / 2, "share right, %", "label", "middle", turn=-90)
