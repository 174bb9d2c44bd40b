"""Builds parts of the tables of a latency study: meter figures with their reasons, lines on machine and overhead."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.log.manifest import Versions
from memarena.log.measuring import MeterFigure
from memarena.report.figures import NA, number
from memarena.report.layout import Cell
from memarena.scoring.figures import Floor


def machine_text(versions: Versions) -> str:
    """Return one line on the machine."""
    return ", ".join(filter(None, (versions.platform, versions.cpu, f"Python {versions.python}")))


def floor_text(floor: Floor | None) -> str:
    """Return one line on the overhead baseline of the machine, which is printed but never subtracted."""
    if floor is None:
        return "not measured"
    spans_by_name = [
        ("Search", floor.search),
        ("gateway hop", floor.gateway_hop),
        ("gateway less direct", floor.gateway_added),
    ]
    parts = [
        f"{name} {spans.p50:.2f} ms" for name, spans in spans_by_name if spans is not None and spans.p50 is not None
    ]
    return ("p50 with a null backend and a null reader: " + ", ".join(parts)) if parts else "too few round trips"


def share_cell(share: float | None, digits: int = 1) -> Cell:
    """Return a cell with a share in percent, followed by the sign."""
    return NA if share is None else Cell(f"{100 * share:.{digits}f}%")


def meter_cell(figure: MeterFigure, digits: int, unit: float = 1.0) -> Cell:
    """Return a cell with a meter's figure in ``unit``; void or n/a if there is none."""
    if figure.value is None:
        return Cell("void", faint=True) if figure.status == "void" else NA
    return number(figure.value / unit, digits)


def reasons(figures: Sequence[tuple[str, MeterFigure]]) -> list[str]:
    """Return each reason once, with the figures that it affects."""
    return list(dict.fromkeys(f"{name} {figure.status}: {figure.reason}" for name, figure in figures if figure.reason))
