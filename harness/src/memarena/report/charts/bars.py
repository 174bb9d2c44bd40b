"""Draws bar charts: time to the first token split into Search and prefill, shares with intervals, stacked counts.

Each chart has its figures as text too: in a description for screen readers, and as tooltips.
"""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.brief_rows import FEWEST_QUESTIONS, BriefRow
from memarena.report.charts.scale import Linear, round_up, tick_label
from memarena.report.charts.scatter import series_of, shortened
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.figures import average_to_rank_by, few_egos
from memarena.report.rows import ReportRow, row_name
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS, Interval

WIDTH, NAMES, RIGHT = 460.0, 180.0, 66.0
"""Width of a drawing, of the column of names at its left, and of the column of values at its right."""
ROW = 30.0
"""Height of a row."""
NAME_WIDTH = 24
"""Characters of a name, at most."""


def ttft_split(rows: Sequence[ReportRow], key: str = "ttft-split") -> Figure | None:
    """Draw medians of Search and prefill as stacked bars; rows without a language model are left out."""
    medians = [
        (row, latency.search.p50, latency.ttft.p50, latency.end_to_end.p50)
        for row in rows
        if row.scores.real_reader and (latency := row.scores.latency) is not None
    ]
    complete = [(row, a, b, c) for row, a, b, c in medians if a is not None and b is not None and c is not None]
    if not complete:
        return None
    top = 30.0
    height = top + ROW * len(complete) + 42
    description = "; ".join(
        f"{row_name(rows, r, of_times=True)}: Search+floor {a:.1f} ms, TTFT {b:.1f} ms" for r, a, b, _ in complete
    )
    drawing = Drawing(key, WIDTH, height, "Time to the first token, split", f"Medians in milliseconds. {description}.")
    scale = Linear(0, round_up(max(a + b for _, a, b, _ in complete)), NAMES, WIDTH - RIGHT)
    _hatch(drawing, key)
    _ticks(drawing, scale, top, top + ROW * len(complete), "ms, p50")
    drawing.rect(NAMES, 6, 12, 12, "bar search")
    drawing.rect(NAMES, 6, 12, 12, "hatch", pattern=f"{key}-hatch")
    drawing.text(NAMES + 18, 16, "Search+floor", "legend")
    drawing.rect(NAMES + 118, 6, 12, 12, "bar prefill")
    drawing.text(NAMES + 136, 16, "TTFT (prefill)", "legend")
    for index, (row, search, prefill, total) in enumerate(complete):
        y = top + ROW * index + 6
        _name(drawing, rows, row, y + 13)
        edge = scale.at(search)
        drawing.rect(NAMES, y, max(edge - NAMES, 0.6), ROW - 12, "bar search", f"Search+floor {search:.2f} ms")
        drawing.rect(NAMES, y, max(edge - NAMES, 0.6), ROW - 12, "hatch", pattern=f"{key}-hatch")
        drawing.rect(edge, y, scale.at(search + prefill) - edge, ROW - 12, "bar prefill", f"TTFT {prefill:.1f} ms")
        drawing.text(
            scale.at(search + prefill) + 6, y + 13, f"{total:,.0f} ms" if total >= 10 else f"{total:.1f} ms", "value"
        )
    caption = (
        "Bars are medians of each part; the figure at a bar is the median of the sum, which need not be the sum "
        "of the medians. Search+floor is the memory's share; TTFT is the model reading what the memory returned."
    )
    return Figure(key, "Time to the first token, split", caption, drawing.render())


def average_intervals(rows: Sequence[ReportRow], key: str = "avg-intervals") -> Figure | None:
    """Draw the average that ranks the rows, with its 95% interval over egos."""
    average = average_to_rank_by([row.scores for row in rows])
    with_average = [
        (row, value, interval)
        for row in rows
        if (value := row.scores.metrics[average].value) is not None
        and (interval := row.scores.intervals.get(average)) is not None
    ]
    if not with_average:
        return None
    top = 12.0
    bottom = top + ROW * len(with_average)
    description = "; ".join(
        f"{row_name(rows, r)}: {100 * v:.1f}, {100 * i.low:.1f} to {100 * i.high:.1f}" for r, v, i in with_average
    )
    drawing = Drawing(key, WIDTH, bottom + 42, f"{average} with its interval", f"In percent. {description}.")
    scale = Linear(0, 100, NAMES, WIDTH - RIGHT)
    _ticks(drawing, scale, top, bottom, f"{average}, %")
    series = series_of(rows)
    for index, (row, value, interval) in enumerate(with_average):
        y = top + ROW * index + ROW / 2
        shape = series[row.scores.backend]
        _name(drawing, rows, row, y + 4)
        ends = scale.at(max(100 * interval.low, 0)), scale.at(min(100 * interval.high, 100))
        drawing.line(ends[0], y, ends[1], y, f"whisker c{shape % 8}")
        for end in ends:
            drawing.line(end, y - 4, end, y + 4, f"whisker c{shape % 8}")
        title = f"{100 * value:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
        drawing.marker(scale.at(100 * value), y, shape, hollow=row.scores.diagnostic, title=title)
        drawing.text(WIDTH - RIGHT + 10, y + 4, f"{100 * value:.1f}", "value")
    few = few_egos((row.tag, interval) for row, _, interval in with_average)
    warning = f" Fewer than {FEWEST_CLUSTERS} egos behind {few}: do not rely on these." if few else ""
    caption = f"Intervals at 95%, resampled by ego: what another set of people in the same world would give.{warning}"
    return Figure(key, f"{average} with its interval", caption, drawing.render())


def ranked_right(rows: Sequence[BriefRow], key: str = "ranked-right") -> Figure | None:
    """Draw the share right of each row with enough questions, best first, with 95% intervals."""
    ranked = [
        row
        for row in rows
        if row.right.value is not None and row.scores.counts.asked >= FEWEST_QUESTIONS and not row.nothing_measured
    ]
    if not ranked:
        return None
    return _shares(
        key,
        "Right answers, ranked",
        [(row.name, row.reader, row.right.value or 0.0, row.interval, row.scores.diagnostic) for row in ranked],
        "share right, %",
        "Bars end at the share right; whiskers are 95% intervals over egos. Where two overlap, their order is open.",
    )


def recall_bars(rows: Sequence[BriefRow], key: str = "recall-bars") -> Figure | None:
    """Draw evidence recall at 10 of each row with enough questions that have evidence."""
    with_recall = [row for row in rows if row.recall is not None and row.evidence_questions >= FEWEST_QUESTIONS]
    if not with_recall:
        return None
    return _shares(
        key,
        "Evidence recall at 10",
        [(row.name, row.reader, row.recall or 0.0, None, row.scores.diagnostic) for row in with_recall],
        "evidence among the first 10 items, %",
        "Share of a question's evidence sessions among the first 10 items of Search; no reader makes up for the rest.",
    )


_STAGES = {
    "not_ingested": "not ingested",
    "not_retrieved": "not retrieved",
    "cut_from_prompt": "cut from the prompt",
    "misread": "misread",
    "unknown": "not known",
}
"""Stages at which an answer went wrong, in the order of the bar, and their names in the legend."""


def error_split(rows: Sequence[BriefRow], key: str = "error-split") -> Figure | None:
    """Draw wrong answers by stage as stacked bars; rows with few of them are left out."""
    by_row = [(row, [getattr(row.scores.errors, stage) for stage in _STAGES]) for row in rows if row.scores.errors]
    with_enough = [(row, counts) for row, counts in by_row if sum(counts) >= FEWEST_QUESTIONS]
    return stacked_shares(
        key,
        "Where wrong answers went wrong",
        [(f"{row.name} · {row.reader}", counts) for row, counts in with_enough],
        list(_STAGES.values()),
        "of the wrong answers, %",
        "Wrong answers to questions that had evidence and could be answered: what to improve first in each memory.",
    )


def stacked_shares(
    key: str, title: str, bars: Sequence[tuple[str, Sequence[int]]], names: Sequence[str], label: str, caption: str
) -> Figure | None:
    """Draw bars of 100%, split by counts; parts that are 0 in every bar are left out. None without bars.

    Args:
        key: key of the drawing.
        title: what is counted.
        bars: (name, counts), with a count for each of ``names``.
        names: names of the parts, from the left.
        label: text under the axis.
        caption: text under the title.
    """
    if not bars:
        return None
    parts = [part for part in range(len(names)) if any(counts[part] for _, counts in bars)]
    top = 14.0 + 18 * ((len(parts) + 1) // 2)
    bottom = top + ROW * len(bars)
    described = "; ".join(f"{name}: {', '.join(f'{names[p]} {counts[p]}' for p in parts)}" for name, counts in bars)
    drawing = Drawing(key, WIDTH, bottom + 42, title, f"Counts. {described}.")
    scale = Linear(0, 100, NAMES, WIDTH - RIGHT)
    _ticks(drawing, scale, top, bottom, label)
    for order, part in enumerate(parts):
        x, y = 28 + order % 2 * 200, 6.0 + order // 2 * 18
        drawing.rect(x, y, 12, 12, f"bar part c{part}")
        drawing.text(x + 18, y + 10, names[part], "legend")
    for index, (name, counts) in enumerate(bars):
        y, total, start = top + ROW * index + 6, sum(counts), 0.0
        drawing.text(14, y + 13, shortened(name, NAME_WIDTH + 2), "legend")
        for part in parts:
            width = 100 * counts[part] / total
            if width:
                x_start, x_end = scale.at(start), scale.at(start + width)
                shown = f"{names[part]}: {counts[part]} of {total}"
                drawing.rect(x_start, y, x_end - x_start, ROW - 12, f"bar part c{part}", shown)
            start += width
        drawing.text(WIDTH - RIGHT + 10, y + 13, f"n {total}", "value")
    return Figure(key, title, caption, drawing.render())


def _shares(
    key: str,
    title: str,
    bars: Sequence[tuple[str, str, float, Interval | None, bool]],
    label: str,
    caption: str,
) -> Figure:
    """Draw bars of shares with their intervals; diagnostics are hollow."""
    top = 12.0
    bottom = top + ROW * len(bars)
    description = "; ".join(
        f"{name}, {reader}: {100 * share:.1f}{_between(interval)}" for name, reader, share, interval, _ in bars
    )
    drawing = Drawing(key, WIDTH, bottom + 42, title, f"In percent. {description}.")
    scale = Linear(0, 100, NAMES, WIDTH - RIGHT)
    _ticks(drawing, scale, top, bottom, label)
    for index, (name, reader, share, interval, hollow) in enumerate(bars):
        y = top + ROW * index
        drawing.text(14, y + 19, shortened(f"{name} · {reader}", NAME_WIDTH + 2), "legend")
        width = max(scale.at(100 * share) - NAMES, 0.6)
        drawing.rect(NAMES, y + 7, width, ROW - 14, "bar rank" + (" hollow" if hollow else ""), f"{100 * share:.1f}%")
        if interval is not None:
            ends = scale.at(max(100 * interval.low, 0)), scale.at(min(100 * interval.high, 100))
            drawing.line(ends[0], y + ROW / 2, ends[1], y + ROW / 2, "median")
            for end in ends:
                drawing.line(end, y + ROW / 2 - 4, end, y + ROW / 2 + 4, "median")
        drawing.text(WIDTH - RIGHT + 10, y + 19, f"{100 * share:.1f}", "value")
    return Figure(key, title, caption, drawing.render())


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f", {100 * interval.low:.1f} to {100 * interval.high:.1f}"


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
    """Define the pattern of slanted lines that distinguishes Search from prefill without colour."""
    drawing.parts.append(
        f'<defs><pattern id="{key}-hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line class="stripe" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
    )
