"""Draws scatter plots of two shares: privacy against utility, recall against reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memarena.report.charts.scale import Linear
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.rows import ReportRow, row_name
from memarena.scoring.uncertainty_records import Interval

WIDTH, SIDE = 460.0, 330.0
"""Width of a drawing, and side of the square within its axes."""
LEFT, TOP = 62.0, 26.0
"""Margins of that square."""
LEGEND_ROW = 19.0
"""Height of a line of the legend."""
_AROUND = ((0, -12), (12, -8), (13, 4), (10, 15), (0, 18), (-10, 15), (-13, 4), (-12, -8),
           (0, -24), (24, -14), (26, 6), (20, 28), (0, 31), (-20, 28), (-26, 6), (-24, -14))  # fmt: skip
"""Candidate offsets of a letter from its mark, in pixels, the preferred first."""


@dataclass(frozen=True)
class Point:
    """A row as a point, in percent, with the ends of its intervals if known."""

    tag: str
    name: str
    x: float
    y: float
    series: int
    hollow: bool
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None


def privacy_utility(rows: Sequence[ReportRow], key: str = "privacy-utility") -> Figure | None:
    """Draw D6 privacy against utility, with the line J = 0 of systems that ignore the asker."""
    points = _points(rows, "U", "P")
    if not points:
        return None
    drawing, x, y = _frame(
        key,
        "Privacy against utility",
        points,
        ("utility U: disclosed to those who may know, %", "privacy P: withheld from those who may not know, %"),
    )
    drawing.path([(x.at(0), y.at(100)), (x.at(100), y.at(100)), (x.at(100), y.at(0))], "zone", closed=True)
    drawing.parts.insert(0, drawing.parts.pop())  # behind the grid
    drawing.line(x.at(0), y.at(100), x.at(100), y.at(0), "guide")
    drawing.text(x.at(33), y.at(67) - 6, "J = 0: ignores the asker", "note", "middle", turn=45)
    drawing.text(x.at(100), 11, "best: retrieves and controls access ↓", "note", "end")
    _draw(drawing, points, x, y)
    caption = (
        "Above the dashed line a system withholds more from those who may not know than from those who may. "
        "Systems that ignore the asker lie on it: disclosing always, never or at random." + _bars(points)
    )
    return Figure(key, "Privacy against utility (D6)", caption, drawing.render())


def recall_reasoning(rows: Sequence[ReportRow], key: str = "recall-reasoning") -> Figure | None:
    """Draw recall against reasoning."""
    points = _points(rows, "Rec", "Rea")
    if not points:
        return None
    drawing, x, y = _frame(key, "Recall against reasoning", points, ("recall (D1, D2), %", "reasoning (D3, D4), %"))
    drawing.line(x.at(0), y.at(0), x.at(100), y.at(100), "guide")
    _draw(drawing, points, x, y)
    caption = "Below the dashed line a system recalls more than it can reason about." + _bars(points)
    return Figure(key, "Recall against reasoning", caption, drawing.render())


def series_of(rows: Sequence[ReportRow]) -> dict[str, int]:
    """Return for each backend the number of its shape and colour, in the order of the rows.

    The style sheet has colours ``c0`` to ``c7``, so classes use the number modulo 8 (``SHAPES`` of svg.py).
    """
    return {backend: index for index, backend in enumerate(dict.fromkeys(row.scores.backend for row in rows))}


def _points(rows: Sequence[ReportRow], x: str, y: str) -> list[Point]:
    """Return a point for each row that has values of both metrics."""
    series = series_of(rows)
    points = []
    for row in rows:
        scores = row.scores
        first, second = scores.metrics[x].value, scores.metrics[y].value
        if first is None or second is None:
            continue
        points.append(
            Point(
                row.tag,
                row_name(rows, row),
                100 * first,
                100 * second,
                series[scores.backend],
                scores.diagnostic,
                _ends(scores.intervals.get(x)),
                _ends(scores.intervals.get(y)),
            )
        )
    return points


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (100 * interval.low, 100 * interval.high)


def _bars(points: Sequence[Point]) -> str:
    return " Thin bars are 95% intervals over egos." if any(p.x_ends or p.y_ends for p in points) else ""


def _frame(key: str, title: str, points: Sequence[Point], labels: tuple[str, str]) -> tuple[Drawing, Linear, Linear]:
    """Draw axes from 0 to 100 with a grid and labels (x, y); return the drawing and both axes."""
    legend_rows = (len(points) + 1) // 2
    height = TOP + SIDE + 50 + LEGEND_ROW * legend_rows
    description = "; ".join(f"{p.name}: {p.x:.1f}, {p.y:.1f}" for p in points)
    drawing = Drawing(key, WIDTH, height, title, f"{labels[0]} across, {labels[1]} up. {description}.")
    x = Linear(0, 100, LEFT, LEFT + SIDE)
    y = Linear(0, 100, TOP + SIDE, TOP)
    for value in (0, 25, 50, 75, 100):
        drawing.line(x.at(value), y.at(0), x.at(value), y.at(100), "grid")
        drawing.line(x.at(0), y.at(value), x.at(100), y.at(value), "grid")
        drawing.text(x.at(value), y.at(0) + 17, str(value), "tick", "middle")
        drawing.text(x.at(0) - 8, y.at(value) + 4, str(value), "tick", "end")
    drawing.text((x.start + x.end) / 2, y.start + 36, labels[0], "label", "middle")
    drawing.text(16, (y.start + y.end) / 2, labels[1], "label", "middle", turn=-90)
    return drawing, x, y


def _draw(drawing: Drawing, points: Sequence[Point], x: Linear, y: Linear) -> None:
    """Draw intervals, marks, letters and the legend."""
    for p in points:
        if p.x_ends:
            drawing.line(x.at(p.x_ends[0]), y.at(p.y), x.at(p.x_ends[1]), y.at(p.y), f"whisker c{p.series % 8}")
        if p.y_ends:
            drawing.line(x.at(p.x), y.at(p.y_ends[0]), x.at(p.x), y.at(p.y_ends[1]), f"whisker c{p.series % 8}")
    occupied = [(x.at(p.x), y.at(p.y)) for p in points]
    for p in points:
        title = f"{p.name}: {p.x:.1f}, {p.y:.1f}"
        drawing.marker(x.at(p.x), y.at(p.y), p.series, hollow=p.hollow, title=title)
    for p in points:
        spot = _free_spot(x.at(p.x), y.at(p.y), occupied)
        occupied.append((spot[0], spot[1] - 4))
        drawing.text(spot[0], spot[1], p.tag, "tag", "middle")
    for index, p in enumerate(points):
        legend_entry(drawing, index, TOP + SIDE + 62, p.tag, p.name, p.series, hollow=p.hollow)


def _free_spot(x: float, y: float, occupied: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the candidate position of a letter that is farthest from all other marks and letters."""
    spots = [(x + dx, y + dy) for dx, dy in _AROUND]

    def room(spot: tuple[float, float]) -> float:
        neighbours = [(a, b) for a, b in occupied if (a, b) != (x, y)]
        nearest = min(((a - spot[0]) ** 2 + (b - spot[1] + 4) ** 2 for a, b in neighbours), default=400.0)
        return min(nearest, 144.0)  # 12 pixels are enough: then the first candidate is best

    return max(spots, key=room)


def legend_entry(drawing: Drawing, index: int, top: float, tag: str, name: str, series: int, *, hollow: bool) -> None:
    """Draw letter, mark and name of a row in a legend of two columns.

    Args:
        drawing: the drawing, :data:`WIDTH` pixels wide.
        index: index of the entry: left, right, then the next line.
        top: y of the first line's text.
        tag: letter of the row.
        name: name of the row.
        series: number of the shape and colour of its mark.
        hollow: whether the row is a diagnostic.
    """
    x, y = 22 + index % 2 * (WIDTH - 20) / 2, top + index // 2 * LEGEND_ROW
    drawing.text(x - 8, y, tag, "tag", "end")
    drawing.marker(x + 4, y - 4, series, hollow=hollow, size=4.5)
    drawing.text(x + 15, y, shortened(name, 31), "legend")


def shortened(text: str, width: int) -> str:
    """Truncate a name to ``width`` characters, with an ellipsis."""
    return text if len(text) <= width else text[: width - 1] + "…"
