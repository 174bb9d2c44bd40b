"""What grows with the life: Search over the turns that the memory holds and over days, and taking a day in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena.report.charts.scale import Linear, log_axis, round_up, tick_label
from memarena.report.charts.scatter import LEGEND_ROW, series_of, shortened
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.rows import ReportRow, row_name

WIDTH, SIDE = 460.0, 230.0
LEFT, TOP, RIGHT = 62.0, 14.0, 30.0
MOST_MARKS = 40
"""A line of more points is drawn without a mark at each."""
Points = Sequence[tuple[float, float]]
"""Across (turns or days) and milliseconds above 0."""


@dataclass(frozen=True)
class _Words:
    title: str
    across: str
    unit: str
    """Of a point across, in front of or behind its number."""
    up: str
    caption: str


def search_over_history(rows: Sequence[ReportRow], key: str) -> Figure | None:
    """Median Search against the turns that the memory holds. Rows need two parts that have a median."""
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
            "Search p50, ms",
            "Each mark is the median over a quarter of the questions, ordered by how much the memory held when asked.",
        ),
    )


def search_over_days(rows: Sequence[ReportRow], key: str) -> Figure | None:
    """Median Search of the questions asked after each day. Rows need two days that have a median."""
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
            "Search p50, ms",
            "Median over the questions asked after each day, where there are enough of them.",
        ),
    )


def ingest_over_days(rows: Sequence[ReportRow], key: str) -> Figure | None:
    """Mean time of taking in each day. Rows need two days that were timed."""
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
    shown = [row for row in rows if len(lines[row.tag]) > 1]
    if not shown:
        return None
    points = [point for row in shown for point in lines[row.tag]]
    said = "; ".join(
        f"{row_name(rows, row)}: {', '.join(f'{_at(words, x)} {ms:.2f} ms' for x, ms in lines[row.tag])}"
        for row in shown
    )
    drawing = Drawing(key, WIDTH, TOP + SIDE + 50 + LEGEND_ROW * ((len(shown) + 1) // 2), words.title, f"{said}.")
    x = Linear(0, round_up(max(at for at, _ in points)), LEFT, WIDTH - RIGHT)
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
    for place, row in enumerate(shown):
        shape, hollow, own = series[row.scores.backend], row.scores.diagnostic, lines[row.tag]
        drawing.path([(x.at(at), y.at(ms)) for at, ms in own], f"trend c{shape % 8}")
        for at, ms in own if len(own) <= MOST_MARKS else ():
            title = f"{row_name(rows, row)}: {_at(words, at)}, {ms:.2f} ms"
            drawing.marker(x.at(at), y.at(ms), shape, hollow=hollow, size=4, title=title)
        left, line = 22 + place % 2 * (WIDTH - 20) / 2, TOP + SIDE + 62 + place // 2 * LEGEND_ROW
        drawing.text(left - 8, line, row.tag, "tag", "end")
        drawing.marker(left + 4, line - 4, shape, hollow=hollow, size=4.5)
        drawing.text(left + 15, line, shortened(row_name(rows, row), 31), "legend")
    end_tags(drawing, {row.tag: (x.at(lines[row.tag][-1][0]), y.at(lines[row.tag][-1][1])) for row in shown})
    return Figure(key, words.title, words.caption, drawing.render())


def _at(words: _Words, value: float) -> str:
    return words.unit.format(f"{value:,.0f}")


def _ticks(high: float) -> list[float]:
    """Quarters, or every whole number where there are no more than that."""
    return [float(n) for n in range(int(high) + 1)] if high <= 4 else [high * quarter / 4 for quarter in range(5)]


def end_tags(drawing: Drawing, ends: Mapping[str, tuple[float, float]]) -> None:
    """Letters behind the ends of lines, side by side where the ends lie close together."""
    taken: list[tuple[float, float]] = []
    for tag, (x, y) in ends.items():
        place = x + 11
        while any(abs(place - a) < 11 and abs(y - b) < 12 for a, b in taken):
            place += 11
        taken.append((place, y))
        drawing.text(place, y + 4, tag, "tag", "middle")
