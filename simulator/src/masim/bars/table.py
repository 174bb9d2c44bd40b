"""The table of bars: each figure with its bar and, where it is given, LoCoMo's beside it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from masim.bars.evidence import bm25_recall, cue_auc, place_figures, stated_facts
from masim.bars.text import TextFigures, locomo_texts, text_figures, world_texts


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar: what is measured, the median over worlds, the bar in words, whether it is met, LoCoMo's figure."""

    name: str
    figure: float
    bar: str
    met: bool
    locomo: float | None = None


_TEXT: tuple[tuple[str, Callable[[TextFigures], float], str, float, float], ...] = (
    ("masked 8-gram coverage", lambda found: found.masked_8gram, "at most 0.25", 0, 0.25),
    ("6-gram coverage", lambda found: found.plain_6gram, "at most 0.12", 0, 0.12),
    ("words per turn", lambda found: found.words_per_turn, "45 to 68 (60 to 90 tokens)", 45, 68),
    ("words per session", lambda found: found.words_per_session, "530 to 640 (700 to 850 tokens)", 530, 640),
    ("long turns that occur twice", lambda found: found.repeated_long_turns, "none", 0, 0),
)


def measure(folders: list[Path], train: list[Path], locomo: Path | None) -> list[BarRow]:
    """Bars over some worlds. ``train`` are the worlds that the cue classifier learns from; none: no such row."""
    texts = [text_figures(world_texts(folder)) for folder in folders]
    beside = text_figures(locomo_texts(locomo)) if locomo else None
    found = []
    for name, read, bar, low, high in _TEXT:
        figure = statistics.median(read(one) for one in texts)
        found.append(BarRow(name, figure, bar, low <= figure <= high, read(beside) if beside else None))
    places = [place_figures(folder) for folder in folders]
    decile = statistics.median(one.worst_decile for one in places)
    ratio = statistics.median(one.length_ratio for one in places)
    found.append(BarRow("evidence in its fullest tenth of a session", decile, "at most 0.15", decile <= 0.15))
    found.append(BarRow("median length, evidence to other turns", ratio, "0.9 to 1.1", 0.9 <= ratio <= 1.1))
    if train:
        area = cue_auc([stated_facts(folder) for folder in train], [stated_facts(folder) for folder in folders])
        found.append(BarRow("AUC of asked facts", area, "at most 0.55", not math.isnan(area) and area <= 0.55))
    by_family: dict[str, list[float]] = {}
    for folder in folders:
        for family, recall in bm25_recall(folder).items():
            by_family.setdefault(family, []).append(recall)
    for family, recalls in sorted(by_family.items()):
        figure = statistics.fmean(recalls)
        found.append(BarRow(f"bm25 recall at 10, {family}", figure, "0.3 to 0.8", 0.3 <= figure <= 0.8))
    return found


def as_lines(table: list[BarRow]) -> list[str]:
    """The table as aligned text."""
    lines = [f"{'property':<46}{'figure':>10}  {'LoCoMo':>8}  {'met':<4} bar"]
    for row in table:
        locomo = f"{row.locomo:.3f}" if row.locomo is not None else ""
        lines.append(f"{row.name:<46}{row.figure:>10.3f}  {locomo:>8}  {'yes' if row.met else 'NO':<4} {row.bar}")
    return lines
