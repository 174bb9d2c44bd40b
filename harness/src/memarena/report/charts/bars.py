"""Rows of bars: time to the first token split in search and prefill, and averages with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.charts.scale import Linear, round_up, tick_label
from memarena.report.charts.scatter import series_of, shortened
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.figures import few_egos
from memarena.report.rows import ReportRow, row_name
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS

WIDTH, NAMES, RIGHT = 460.0, 180.0, 66.0
ROW = 30.0
NAME_WIDTH = 24


def ttft_split(rows: Sequence[ReportRow], key: str = "ttft-split") -> Figure | None:
    """Medians of Search and prefill, stacked; rows without a language model are left out."""
    timed = [
        (row, latency.search.p50, latency.ttft.p50, latency.end_to_end.p50)
        for row in rows
        if row.scores.real_reader and (latency := row.scores.latency) is not None
    ]
    known = [(row, a, b, c) for row, a, b, c in timed if a is not None and b is not None and c is not None]
    if not known:
        return None
    top = 30.0
    height = top + ROW * len(known) + 42
    said = "; ".join(f"{row_name(rows, r)}: search {a:.1f} ms, prefill {b:.1f} ms" for r, a, b, _ in known)
    drawing = Drawing(key, WIDTH, height, "Time to the first token, split", f"Medians in milliseconds. {said}.")
    scale = Linear(0, round_up(max(a + b for _, a, b, _ in known)), NAMES, WIDTH - RIGHT)
    _hatch(drawing, key)
    _ticks(drawing, scale, top, top + ROW * len(known), "ms, p50")
    drawing.rect(NAMES, 6, 12, 12, "bar search")
    drawing.rect(NAMES, 6, 12, 12, "hatch", pattern=f"{key}-hatch")
    drawing.text(NAMES + 18, 16, "search", "legend")
    drawing.rect(NAMES + 78, 6, 12, 12, "bar prefill")
    drawing.text(NAMES + 96, 16, "prefill (model, to first token)", "legend")
    for place, (row, search, prefill, total) in enumerate(known):
        y = top + ROW * place + 6
        _name(drawing, rows, row, y + 13)
        edge = scale.at(search)
        drawing.rect(NAMES, y, max(edge - NAMES, 0.6), ROW - 12, "bar search", f"search {search:.2f} ms")
        drawing.rect(NAMES, y, max(edge - NAMES, 0.6), ROW - 12, "hatch", pattern=f"{key}-hatch")
        drawing.rect(edge, y, scale.at(search + prefill) - edge, ROW - 12, "bar prefill", f"prefill {prefill:.1f} ms")
        drawing.text(
            scale.at(search + prefill) + 6, y + 13, f"{total:,.0f} ms" if total >= 10 else f"{total:.1f} ms", "value"
        )
    caption = (
        "Bars are medians of each part; the figure at a bar is the median of the sum, which need not be the sum "
        "of the medians. Search is the memory's share; prefill is the model reading what the memory returned."
    )
    return Figure(key, "Time to the first token, split", caption, drawing.render())


def average_intervals(rows: Sequence[ReportRow], key: str = "avg-intervals") -> Figure | None:
    """Avg of every row with its 95% interval over egos."""
    known = [
        (row, value, interval)
        for row in rows
        if (value := row.scores.metrics["Avg"].value) is not None
        and (interval := row.scores.intervals.get("Avg")) is not None
    ]
    if not known:
        return None
    top = 12.0
    bottom = top + ROW * len(known)
    said = "; ".join(
        f"{row_name(rows, r)}: {100 * v:.1f}, {100 * i.low:.1f} to {100 * i.high:.1f}" for r, v, i in known
    )
    drawing = Drawing(key, WIDTH, bottom + 42, "Avg with its interval", f"In percent. {said}.")
    scale = Linear(0, 100, NAMES, WIDTH - RIGHT)
    _ticks(drawing, scale, top, bottom, "Avg, %")
    series = series_of(rows)
    for place, (row, value, interval) in enumerate(known):
        y = top + ROW * place + ROW / 2
        shape = series[row.scores.backend]
        _name(drawing, rows, row, y + 4)
        ends = scale.at(max(100 * interval.low, 0)), scale.at(min(100 * interval.high, 100))
        drawing.line(ends[0], y, ends[1], y, f"whisker c{shape % 8}")
        for end in ends:
            drawing.line(end, y - 4, end, y + 4, f"whisker c{shape % 8}")
        title = f"{100 * value:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
        drawing.marker(scale.at(100 * value), y, shape, hollow=row.scores.diagnostic, title=title)
        drawing.text(WIDTH - RIGHT + 10, y + 4, f"{100 * value:.1f}", "value")
    few = few_egos((row.tag, interval) for row, _, interval in known)
    warning = f" Fewer than {FEWEST_CLUSTERS} egos behind {few}: do not rely on these." if few else ""
    caption = f"Intervals at 95%, resampled by ego: what another set of people in the same world would give.{warning}"
    return Figure(key, "Avg with its interval", caption, drawing.render())


def _name(drawing: Drawing, rows: Sequence[ReportRow], row: ReportRow, y: float) -> None:
    drawing.text(14, y, row.tag, "tag", "middle")
    drawing.text(28, y, shortened(row_name(rows, row), NAME_WIDTH), "legend")


def _ticks(drawing: Drawing, scale: Linear, top: float, bottom: float, label: str) -> None:
    for quarter in range(5):
        value = scale.low + (scale.high - scale.low) * quarter / 4
        drawing.line(scale.at(value), top, scale.at(value), bottom, "grid")
        drawing.text(scale.at(value), bottom + 16, tick_label(value), "tick", "middle")
    drawing.text((scale.start + scale.end) / 2, bottom + 34, label, "label", "middle")


def _hatch(drawing: Drawing, key: str) -> None:
    """Slanted lines that distinguish search from prefill without colour."""
    drawing.parts.append(
        f'<defs><pattern id="{key}-hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line class="stripe" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
    )
