"""Draws distributions of times: a small histogram for each row on a common logarithmic axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from memarena.report.charts.bars import NAME_WIDTH
from memarena.report.charts.scale import Logarithmic, log_axis, tick_label
from memarena.report.charts.scatter import series_of, shortened
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.rows import ReportRow, row_name
from memarena.scoring.results import QuestionScore, Spans

WIDTH, NAMES, RIGHT = 460.0, 180.0, 20.0
"""Width of a drawing, of the column of names at its left, and of the margin at its right."""
ROW, TOP = 38.0, 8.0
"""Height of a row, and of the margin above the first."""
BINS = 48
"""Bins of a histogram, of equal width on the logarithmic axis."""
RUG_UP_TO = 60
"""Samples up to which each is drawn as a tick."""


def samples_of(
    row: ReportRow, questions: Sequence[QuestionScore], value: Callable[[Spans], float | None]
) -> list[float]:
    """Return times of a row in milliseconds, from the segment of the run that its percentiles are over."""
    latency, seeds = row.scores.latency, row.scores.headline_seeds
    if latency is None:
        return []
    cells = {c.cell_id for c in row.scores.cells if c.seed_label in seeds}
    spans = [q.spans for q in questions if q.cell_id in cells and q.spans is not None]
    values = [value(s) for s in spans if s.segment == latency.segment]
    return sorted(v for v in values if v is not None and v > 0)


def end_to_end_ms(spans: Spans) -> float | None:
    """Return Search plus TTFT of a question, ms; None if either is unknown."""
    return None if spans.search_ms is None or spans.ttft_ms is None else spans.search_ms + spans.ttft_ms


def search_ms(spans: Spans) -> float | None:
    """Return Search of a question, ms; None if unknown."""
    return spans.search_ms


def distribution(
    rows: Sequence[ReportRow], samples: Mapping[str, Sequence[float]], key: str, title: str, caption: str
) -> Figure | None:
    """Draw a histogram for each row. ``samples``: sorted milliseconds by tag of a row; rows without are left out."""
    drawn_rows = [row for row in rows if samples.get(row.tag)]
    if not drawn_rows:
        return None
    smallest = min(samples[row.tag][0] for row in drawn_rows)
    largest = max(samples[row.tag][-1] for row in drawn_rows)
    bottom = TOP + ROW * len(drawn_rows)
    description = "; ".join(
        f"{row_name(rows, row, of_times=True)}: n {len(samples[row.tag])}, median {median(samples[row.tag]):.2f} ms"
        for row in drawn_rows
    )
    drawing = Drawing(key, WIDTH, bottom + 42, title, f"Milliseconds on a logarithmic axis. {description}.")
    axis = log_axis(smallest, largest, NAMES, WIDTH - RIGHT)
    for tick in axis.ticks():
        drawing.line(axis.at(tick), TOP, axis.at(tick), bottom, "grid")
        drawing.text(axis.at(tick), bottom + 16, tick_label(tick), "tick", "middle")
    drawing.text((NAMES + WIDTH - RIGHT) / 2, bottom + 34, "ms, logarithmic", "label", "middle")
    series = series_of(rows)
    for index, row in enumerate(drawn_rows):
        _ridge(drawing, axis, samples[row.tag], TOP + ROW * (index + 1) - 4, series[row.scores.backend])
        y = TOP + ROW * (index + 1) - 14
        drawing.text(14, y, row.tag, "tag", "middle")
        drawing.text(28, y - 4, shortened(row_name(rows, row, of_times=True), NAME_WIDTH), "legend")
        drawing.text(28, y + 9, f"n {len(samples[row.tag]):,}", "note")
    return Figure(key, title, caption, drawing.render())


def _ridge(drawing: Drawing, axis: Logarithmic, samples: Sequence[float], base: float, series: int) -> None:
    """Draw the histogram of a row as a stepped outline, its median, and if they are few its samples."""
    step = (axis.end - axis.start) / BINS
    counts = [0] * BINS
    for sample in samples:
        counts[min(int((axis.at(sample) - axis.start) / step), BINS - 1)] += 1
    unit = (ROW - 12) / max(counts)
    first = next(i for i, n in enumerate(counts) if n)
    last = BINS - next(i for i, n in enumerate(reversed(counts)) if n)
    outline = [(axis.start + first * step, base)]
    for i in range(first, last):
        height = base - counts[i] * unit
        outline += [(axis.start + i * step, height), (axis.start + (i + 1) * step, height)]
    outline.append((axis.start + last * step, base))
    drawing.path(outline, f"ridge c{series % 8}", closed=True)
    if len(samples) <= RUG_UP_TO:
        for sample in samples:
            drawing.line(axis.at(sample), base, axis.at(sample), base + 3, "rug")
    middle = axis.at(median(samples))
    drawing.line(middle, base + 3, middle, base - (ROW - 10), "median")
