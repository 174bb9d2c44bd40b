"""Draws how times grow with the history: Search over turns and days, and ingest over days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena.report.charts.scale import Linear, log_axis, round_up, tick_label
from memarena.report.charts.scatter import LEGEND_ROW, legend_entry, series_of
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.rows import ReportRow, row_name

WIDTH, SIDE = 460.0, 230.0
"""Width of a drawing, and height of the area within its axes."""
LEFT, TOP, RIGHT = 62.0, 14.0, 30.0
"""Margins of that area."""
MOST_MARKS = 40
"""Points of a line up to which each of them has a mark."""
Points = Sequence[tuple[float, float]]
"""(x: turns or days, y: milliseconds, above 0)."""


@dataclass(frozen=True)
class _Words:
    """Texts of a chart; ``across`` and ``up`` are the labels of its axes."""

    title: str
    across: str
    unit: str
    """Format of an x value with its unit, such as ``day {}``."""
    up: str
    caption: str


def search_over_history(rows: Sequence[ReportRow], key: str) -> Figure | None:
    """Draw median Search against the turns in the memory; rows with fewer than two medians are left out."""
    return _lines(
        rows,
        {
            row.tag: [(b.turns_p50, b.search.p50) for b in row.costs.history if b.search.p50] if row.costs else []
            for row in rows
        },
        key,
        _Words(
            "Search against length of history",
            "turns in the memory",
            "{} turns",
            "Search+floor p50, ms",
            "Each mark is the median over a quarter of the questions, ordered by how much the memory held when asked.",
        ),
    )


def search_over_days(rows: Sequence[ReportRow], key: str) -> Figure | None:
    """Draw median Search of the questions after each day; rows with fewer than two medians are left out."""
    return _lines(
        rows,
        {
            row.tag: [(float(d.day), d.search.p50) for d in row.costs.days if d.search.p50] if row.costs else []
            for row in rows
        },
        key,
        _Words(
            "Search over days",
            "days in the memory, from 0",
            "day {}",
            "Search+floor p50, ms",
            "Median over the questions asked after each day, where there are enough of them.",
        ),
    )


def ingest_over_days(rows: Sequence[ReportRow], key: str) -> Figure | None:
    """Draw the mean time of ingest of each day; rows with fewer than two timed days are left out."""
    return _lines(
        rows,
        {
            row.tag: [(float(d.day), d.ingest_ms) for d in row.costs.days if d.ingest_ms] if row.costs else []
            for row in rows
        },
        key,
        _Words(
            "Taking a day in, over days",
            "day that is taken in, from 0",
            "day {}",
            "one day of one ego, mean, ms",
            "A line that rises: the more a memory holds, the longer it takes to add to it.",
        ),
    )


def _lines(rows: Sequence[ReportRow], lines: Mapping[str, Points], key: str, words: _Words) -> Figure | None:
    """Draw a line for each row; ``lines``: its points by tag. Rows with fewer than two points are left out."""
    drawn_rows = [row for row in rows if len(lines[row.tag]) > 1]
    if not drawn_rows:
        return None
    points = [point for row in drawn_rows for point in lines[row.tag]]
    description = "; ".join(
        f"{row_name(rows, row, of_times=True)}: {', '.join(f'{_at(words, x)} {ms:.2f} ms' for x, ms in lines[row.tag])}"
        for row in drawn_rows
    )
    drawing = Drawing(
        key, WIDTH, TOP + SIDE + 50 + LEGEND_ROW * ((len(drawn_rows) + 1) // 2), words.title, f"{description}."
    )
    x = Linear(0, round_up(max(amount for amount, _ in points)), LEFT, WIDTH - RIGHT)
    y = log_axis(min(ms for _, ms in points), max(ms for _, ms in points), TOP + SIDE, TOP)
    for value in _ticks(x.high):
        drawing.line(x.at(value), TOP, x.at(value), TOP + SIDE, "grid")
        drawing.text(x.at(value), TOP + SIDE + 17, tick_label(value), "tick", "middle")
    for tick in y.ticks():
        drawing.line(LEFT, y.at(tick), WIDTH - RIGHT, y.at(tick), "grid")
        drawing.text(LEFT - 8, y.at(tick) + 4, tick_label(tick), "tick", "end")
    drawing.text((LEFT + WIDTH - RIGHT) / 2, TOP + SIDE + 36, words.across, "label", "middle")
    drawing.text(16, TOP + SIDE / 2, words.up, "label", "middle", turn=-90)
    series = series_of(rows)
    for index, row in enumerate(drawn_rows):
        shape, hollow, row_points = series[row.scores.backend], row.scores.diagnostic, lines[row.tag]
        drawing.path([(x.at(amount), y.at(ms)) for amount, ms in row_points], f"trend c{shape % 8}")
        for amount, ms in row_points if len(row_points) <= MOST_MARKS else ():
            title = f"{row_name(rows, row, of_times=True)}: {_at(words, amount)}, {ms:.2f} ms"
            drawing.marker(x.at(amount), y.at(ms), shape, hollow=hollow, size=4, title=title)
        legend_entry(drawing, index, TOP + SIDE + 62, row.tag, row_name(rows, row, of_times=True), shape, hollow=hollow)
    end_tags(drawing, {row.tag: (x.at(lines[row.tag][-1][0]), y.at(lines[row.tag][-1][1])) for row in drawn_rows})
    return Figure(key, words.title, words.caption, drawing.render())


def _at(words: _Words, value: float) -> str:
    return words.unit.format(f"{value:,.0f}")


def _ticks(high: float) -> list[float]:
    """Return five ticks from 0 to ``high``, or all integers if ``high`` is at most 4."""
    return [float(n) for n in range(int(high) + 1)] if high <= 4 else [high * quarter / 4 for quarter in range(5)]


def end_tags(drawing: Drawing, ends: Mapping[str, tuple[float, float]]) -> None:
    """Draw a letter after the end of each line, moved to the right where ends lie close together."""
    tag_positions: list[tuple[float, float]] = []
    for tag, (x, y) in ends.items():
        x_tag = x + 11
        while any(abs(x_tag - a) < 11 and abs(y - b) < 12 for a, b in tag_positions):
            x_tag += 11
        tag_positions.append((x_tag, y))
        drawing.text(x_tag, y + 4, tag, "tag", "middle")
