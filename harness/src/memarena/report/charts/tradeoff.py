"""Draws shares against costs, such as right answers over time to the first token, or over tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memarena.report.charts.growth import end_tags
from memarena.report.charts.scale import Linear, Logarithmic, log_axis, tick_label
from memarena.report.charts.scatter import LEGEND_ROW, legend_entry, series_of
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.rows import ReportRow, row_name

WIDTH, SIDE = 460.0, 300.0
"""Width of a drawing, and height of the area within its axes."""
LEFT, TOP, RIGHT = 62.0, 14.0, 34.0
"""Margins of that area."""


def right_over(
    rows: Sequence[ReportRow],
    cost: Callable[[ReportRow], float | None],
    key: str,
    title: str,
    across: str,
    caption: str,
    *,
    figure: str = "all",
    up: str = "share right, %",
    front: bool = False,
) -> Figure | None:
    """Draw a share of each row over a positive cost, on a logarithmic axis; None if no row has both.

    Args:
        rows: rows of comparable runs.
        cost: the cost of a row; None: n/a.
        key: name of the figure for links.
        title: its title.
        across: what the cost is, with its unit.
        caption: what to read from it.
        figure: key of the share in the row's metrics.
        up: what that share is.
        front: whether a line joins the Pareto front of the competitors.
    """
    points = _points(rows, cost, figure)
    if not points:
        return None
    description = "; ".join(_point_text(rows, *point) for point in points)
    height = TOP + SIDE + 50 + LEGEND_ROW * ((len(points) + 1) // 2)
    drawing = Drawing(key, WIDTH, height, title, f"{across} across, {up} up. {description}.")
    costs = [value for _, value, _ in points]
    x, y = log_axis(min(costs), max(costs), LEFT, WIDTH - RIGHT), Linear(0, 100, TOP + SIDE, TOP)
    _axes(drawing, x, y, across, up)
    series = series_of(rows)
    for row, value, _ in points:
        interval = row.scores.intervals.get(figure)
        if interval is not None:
            ends = y.at(100 * max(interval.low, 0)), y.at(100 * min(interval.high, 1))
            drawing.line(x.at(value), ends[0], x.at(value), ends[1], f"whisker c{series[row.scores.backend] % 8}")
    if front:
        best = front_of([(value, share) for row, value, share in points if not row.scores.diagnostic])
        if len(best) > 1:
            drawing.path([(x.at(value), y.at(share)) for value, share in best], "guide front")
    for point in points:
        row, value, right = point
        shape, hollow = series[row.scores.backend], row.scores.diagnostic
        drawing.marker(x.at(value), y.at(right), shape, hollow=hollow, title=_point_text(rows, *point))
    end_tags(drawing, {row.tag: (x.at(value), y.at(right)) for row, value, right in points})
    for index, (row, _, _) in enumerate(points):
        shape, hollow = series[row.scores.backend], row.scores.diagnostic
        legend_entry(drawing, index, TOP + SIDE + 62, row.tag, row_name(rows, row), shape, hollow=hollow)
    thin = (
        " Thin bars are 95% intervals over egos." if any(r.scores.intervals.get(figure) for r, _, _ in points) else ""
    )
    return Figure(key, title, caption + thin, drawing.render())


def _points(
    rows: Sequence[ReportRow], cost: Callable[[ReportRow], float | None], figure: str
) -> list[tuple[ReportRow, float, float]]:
    """Return (row, cost, share in percent) of the rows that have both."""
    return [
        (row, value, 100 * score.value)
        for row in rows
        if (value := cost(row)) is not None
        and value > 0
        and (score := row.scores.metrics.get(figure)) is not None
        and score.value is not None
    ]


def _point_text(rows: Sequence[ReportRow], row: ReportRow, value: float, right: float) -> str:
    return f"{row_name(rows, row)}: {value:,.4g}, {right:.1f}%"


def _axes(drawing: Drawing, x: Logarithmic, y: Linear, across: str, up: str) -> None:
    for tick in x.ticks():
        drawing.line(x.at(tick), TOP, x.at(tick), TOP + SIDE, "grid")
        drawing.text(x.at(tick), TOP + SIDE + 17, tick_label(tick), "tick", "middle")
    for share in (0, 25, 50, 75, 100):
        drawing.line(LEFT, y.at(share), WIDTH - RIGHT, y.at(share), "grid")
        drawing.text(LEFT - 8, y.at(share) + 4, str(share), "tick", "end")
    drawing.text((LEFT + WIDTH - RIGHT) / 2, TOP + SIDE + 36, f"{across}, logarithmic", "label", "middle")
    drawing.text(16, TOP + SIDE / 2, up, "label", "middle", turn=-90)


def front_of(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto front of points (cost, share), the cheapest first: those that no cheaper point matches."""
    best: list[tuple[float, float]] = []
    for value, share in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or share > best[-1][1]:
            best.append((value, share))
    return best
