"""Draws the figures of a latency study as separate SVG files with their style: parts of the first token, and growth."""

from __future__ import annotations

from memarena.latency.results import Growth, Study
from memarena.report.charts.scale import Linear, round_up, tick_label
from memarena.report.charts.svg import Drawing

WIDTH, NAMES, RIGHT, ROW = 560.0, 190.0, 76.0, 30.0
_PANEL_HEIGHT, _PANEL_GAP, _LEFT = 150.0, 56.0, 64.0
_STYLE = (
    "<style>text{font:12px sans-serif;fill:#222}.axis{stroke:#999;stroke-width:1}.grid{stroke:#ddd;stroke-width:1}"
    ".search{fill:#c2571a}.prefill{fill:#2f6db3}.rest{fill:#b9b9b9}.curve{fill:none;stroke-width:1.6}"
    ".c0{fill:#2f6db3;stroke:#2f6db3}.c1{fill:#c2571a;stroke:#c2571a}.c2{fill:#3f8f4f;stroke:#3f8f4f}"
    ".c3{fill:#8250b5;stroke:#8250b5}.c4{fill:#a8852a;stroke:#a8852a}.c5{fill:#555;stroke:#555}"
    ".c6{fill:#b03a6a;stroke:#b03a6a}.c7{fill:#1f8a8a;stroke:#1f8a8a}.curve{fill:none!important}</style>"
)


def split_figure(study: Study) -> str | None:
    """Draw Search, the model's first token and the rest of each measured cell, stacked; None without any median."""
    complete = [
        (f"{row.backend} · {row.reader}", row.search.p50, row.ttft.p50, row.rest.p50 or 0.0)
        for row in study.efficiency
        if row.search.p50 is not None and row.ttft.p50 is not None
    ]
    if not complete:
        return None
    top = 30.0
    height = top + ROW * len(complete) + 40
    description = "; ".join(
        f"{name}: search {a:.1f} ms, first token {b:.1f} ms, rest {c:.1f} ms" for name, a, b, c in complete
    )
    drawing = Drawing("ttft-split", WIDTH, height, "Time to the first token, split", f"Medians. {description}.")
    scale = Linear(0, round_up(max(a + b + max(c, 0) for _, a, b, c in complete)), NAMES, WIDTH - RIGHT)
    for index, (kind, words) in enumerate((("search", "search"), ("prefill", "model"), ("rest", "rest of Answer"))):
        drawing.rect(NAMES + 100 * index, 6, 12, 12, kind)
        drawing.text(NAMES + 100 * index + 17, 16, words)
    bottom = top + ROW * len(complete)
    for step in range(5):
        value = scale.high * step / 4
        drawing.line(scale.at(value), top, scale.at(value), bottom, "grid")
        drawing.text(scale.at(value), bottom + 16, tick_label(value), anchor="middle")
    drawing.text((NAMES + WIDTH - RIGHT) / 2, bottom + 34, "ms, p50", anchor="middle")
    for index, (name, search, first, rest_ms) in enumerate(complete):
        y, total_ms = top + ROW * index + 6, 0.0
        drawing.text(NAMES - 8, y + 13, name, anchor="end")
        for kind, value in (("search", search), ("prefill", first), ("rest", max(rest_ms, 0.0))):
            width = scale.at(total_ms + value) - scale.at(total_ms)
            drawing.rect(scale.at(total_ms), y, max(width, 0.6), ROW - 12, kind, f"{kind} {value:.2f} ms")
            total_ms += value
        drawing.text(scale.at(total_ms) + 6, y + 13, f"{total_ms:,.0f} ms" if total_ms >= 10 else f"{total_ms:.1f} ms")
    return _alone(drawing)


def growth_figure(growth: Growth) -> str | None:
    """Draw Search, memory and disk against days, a panel each; None without a point."""
    names = list(dict.fromkeys(point.backend for point in growth.points))
    if not names:
        return None
    panels = [
        ("Search, ms (p50)", [(p.backend, p.days, p.search.p50) for p in growth.points]),
        ("memory, MB", [(p.backend, p.days, _mb(p.footprint.memory.value)) for p in growth.points]),
        ("disk, MB", [(p.backend, p.days, _mb(p.footprint.disk.value)) for p in growth.points]),
    ]
    height = 30 + len(panels) * (_PANEL_HEIGHT + _PANEL_GAP)
    words = "Search, memory and disk of each backend against days of history."
    drawing = Drawing("growth", WIDTH, height, "Growth with history", words)
    for index, name in enumerate(names):
        drawing.marker(_LEFT + 6 + 130 * index, 12, index)
        drawing.text(_LEFT + 18 + 130 * index, 16, name)
    last = max(point.days for point in growth.points)
    across = Linear(0, float(last), _LEFT, WIDTH - 24)
    for index, (title, values) in enumerate(panels):
        _panel(drawing, title, values, names, across, 44 + index * (_PANEL_HEIGHT + _PANEL_GAP))
    return _alone(drawing)


def _panel(
    drawing: Drawing,
    title: str,
    values: list[tuple[str, int, float | None]],
    names: list[str],
    across: Linear,
    top: float,
) -> None:
    """Draw one panel: a curve for each backend over days of history."""
    numbers = [value for _, _, value in values if value is not None]
    drawing.text(_LEFT, top - 4, title)
    if not numbers:
        drawing.text(_LEFT, top + 20, "unavailable on this machine")
        return
    up = Linear(0, round_up(max(numbers)), top + _PANEL_HEIGHT, top + 6)
    for step in range(5):
        value = up.high * step / 4
        drawing.line(_LEFT, up.at(value), WIDTH - 24, up.at(value), "grid")
        drawing.text(_LEFT - 6, up.at(value) + 4, tick_label(value), anchor="end")
    for day in sorted({days for _, days, _ in values}):
        drawing.text(across.at(day), top + _PANEL_HEIGHT + 16, str(day), anchor="middle")
    drawing.text(WIDTH - 24, top + _PANEL_HEIGHT + 30, "days of history", anchor="end")
    for series, name in enumerate(names):
        measured = [(days, value) for row_name, days, value in values if row_name == name and value is not None]
        points = [(across.at(days), up.at(value)) for days, value in measured]
        drawing.path(points, f"curve c{series % 8}")
        for (x, y), (days, value) in zip(points, measured, strict=True):
            drawing.marker(x, y, series, size=4, title=f"{name}, {days} days: {value:.2f}")


def _mb(value: float | None) -> float | None:
    return None if value is None else value / 1e6


def _alone(drawing: Drawing) -> str:
    """Return the drawing as a separate SVG file, with its namespace and colours."""
    svg = drawing.render().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    head, _, remainder = svg.partition(">")
    return f'{head} width="{WIDTH:.0f}">{_STYLE}{remainder}\n'
