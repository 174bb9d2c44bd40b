"""Defines a row of the table of quality bars, and prints the table as text and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

AT_HAND = "not at hand"
NO_BAR = "no bar"


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar: its measure, the figure, the bar in words, whether it is met, LoCoMo's figure.

    ``met`` is None if there is no bar, or nothing could be measured and ``note`` says why. ``parts`` holds what the
    figure is made of (families, for example), with the figures of each.
    """

    group: str
    name: str
    figure: float | None
    bar: str
    met: bool | None
    locomo: float | None = None
    note: str = ""
    parts: Mapping[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Return ``pass``, ``MISSED``, ``not measured``, or ``reported`` for a figure that has no bar."""
        if self.bar == NO_BAR and self.figure is not None:
            return "reported"
        return "not measured" if self.met is None else "pass" if self.met else "MISSED"


def bounded(group: str, name: str, figure: float | None, bar: str, low: float, high: float, **rest: object) -> BarRow:
    """Return a row whose figure has to lie from ``low`` to ``high``; not measured if the figure is None or NaN.

    ``rest`` may have ``locomo``, ``note`` and ``parts``, as in BarRow.
    """
    if figure is None or math.isnan(figure):
        return BarRow(group, name, None, bar, None, note=str(rest.get("note") or "nothing to measure"))
    locomo, note, parts = rest.get("locomo"), rest.get("note", ""), rest.get("parts", {})
    assert locomo is None or isinstance(locomo, float)
    assert isinstance(parts, Mapping)
    return BarRow(group, name, figure, bar, low <= figure <= high, locomo, str(note), parts)


def reported(group: str, name: str, figure: float, *, locomo: float | None = None) -> BarRow:
    """Return a row whose figure is printed without a bar."""
    return BarRow(group, name, figure, NO_BAR, None, locomo)


def as_lines(table: Sequence[BarRow], *, with_locomo: bool) -> list[str]:
    """Return the table as aligned text; misses are listed again at its end."""
    lines = [f"{'property':<52}{'figure':>10}  {'LoCoMo':>11}  {'verdict':<12}  bar"]
    group = ""
    for row in table:
        if row.group != group:
            group = row.group
            lines.append(group)
        reference = _number(row.locomo) if row.locomo is not None else "" if with_locomo else AT_HAND
        lines.append(
            f"  {row.name:<50}{_number(row.figure):>10}  {reference:>11}  {row.verdict:<12}  {row.bar}"
            + (f"  ({row.note})" if row.note else "")
        )
    missed = [row for row in table if row.met is False]
    skipped = [row for row in table if row.verdict == "not measured"]
    bars = sum(row.verdict != "reported" for row in table)
    passes = bars - len(missed) - len(skipped)
    lines.append(f"{passes} of {bars} bars pass, {len(missed)} missed, {len(skipped)} not measured")
    lines += [f"MISSED: {row.group}: {row.name}: {_number(row.figure)}; bar: {row.bar}" for row in missed]
    return lines


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 2 else f"{value:.3f}"


def as_json(table: Sequence[BarRow], worlds: Sequence[str], train: Sequence[str]) -> str:
    """Return the table with all its parts as JSON."""
    rows = [{**asdict(row), "parts": dict(row.parts), "verdict": row.verdict} for row in table]
    return json.dumps({"worlds": list(worlds), "train": list(train), "bars": rows}, indent=2, ensure_ascii=False)
