"""Parts of the tables of a latency study: meter figures with their reasons, and lines on machine and overhead."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.log.manifest import Versions
from memarena.log.measuring import MeterFigure
from memarena.report.figures import NA, number
from memarena.report.layout import Cell
from memarena.scoring.figures import Floor


def machine_text(versions: Versions) -> str:
    """The machine in a line."""
    return ", ".join(filter(None, (versions.platform, versions.cpu, f"Python {versions.python}")))


def floor_text(floor: Floor | None) -> str:
    """The overhead baseline of the machine in a line; it is printed, never subtracted."""
    if floor is None:
        return "not measured"
    named = [("Search", floor.search), ("gateway hop", floor.gateway_hop), ("gateway less direct", floor.gateway_added)]
    parts = [f"{name} {spans.p50:.2f} ms" for name, spans in named if spans is not None and spans.p50 is not None]
    return ("p50 with a null backend and a null reader: " + ", ".join(parts)) if parts else "too few round trips"


def share_cell(share: float | None, digits: int = 1) -> Cell:
    """A share in percent, the sign behind it."""
    return NA if share is None else Cell(f"{100 * share:.{digits}f}%")


def meter_cell(figure: MeterFigure, digits: int, unit: float = 1.0) -> Cell:
    """A meter's figure in ``unit``; void or n/a where there is none."""
    if figure.value is None:
        return Cell("void", faint=True) if figure.status == "void" else NA
    return number(figure.value / unit, digits)


def reasons(figures: Sequence[tuple[str, MeterFigure]]) -> list[str]:
    """Each reason once, with the figures it affects."""
    return list(dict.fromkeys(f"{name} {figure.status}: {figure.reason}" for name, figure in figures if figure.reason))
