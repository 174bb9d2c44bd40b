"""Draws the times of one question as a bar."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.charts.svg import Drawing
from memarena.report.question_view.records import StepView

WIDTH, HEIGHT = 600.0, 18.0
LEAST_WIDTH = 0.8
"""Width of a part, at least, so that a short part is visible."""


def timing_bar(steps: Sequence[StepView]) -> str:
    """Return an SVG bar of the consecutive parts; empty if none was measured. Pages list the same times as text."""
    timed_parts = [(step, max(step.ms, 0.0)) for step in steps if step.part and step.ms is not None]
    total = sum(ms for _, ms in timed_parts)
    if not total:
        return ""
    drawing = Drawing("", WIDTH, HEIGHT, "", "")
    start = 0.0
    for step, ms in timed_parts:
        width = WIDTH * ms / total
        drawing.rect(start, 2, max(width, LEAST_WIDTH), HEIGHT - 4, f"bar {step.part}", f"{step.name}: {ms:,.2f} ms")
        start += width
    box = f"0 0 {WIDTH:g} {HEIGHT:g}"
    parts = "".join(drawing.parts)
    return f'<svg class="timing" viewBox="{box}" preserveAspectRatio="none" aria-hidden="true">{parts}</svg>'
