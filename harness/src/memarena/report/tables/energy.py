"""Builds the tables of meter readings: energy and CPU time of each phase, memory and disk of each backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memarena.log.measuring import FootprintTaken, MeterFigure, PhaseMeasured, RailMeasured
from memarena.report.figures import NA, number
from memarena.report.layout import Cell, Column, Fact, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns

_RAILS = (("gpu_rail_j", "GPU rail"), ("sys_j", "system"))
"""Names of the first two rails of every phase, measured or not, and their titles; other rails follow them."""
_LOADS = (
    ("gpu_utilisation", "mean", "GPU %", "GPU load, mean"),
    ("gpu_sm_clock", "mean", "MHz", "clock of the GPU's multiprocessors, mean"),
    ("gpu_temperature", "peak", "GPU °C", "highest temperature of the GPU"),
)
"""(channel of a meter, its statistic, title of the column, meaning)."""
_MB = 1e6


def energy_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of energy by rail, CPU time and load, by cell and phase; None if nothing was metered."""
    phases = [(row, phase) for row in rows if row.costs is not None for phase in row.costs.phases]
    if not phases:
        return None
    title = "Energy"
    if not any(_measured(figure) for _, phase in phases for figure in _figures(phase)):
        reasons = list(dict.fromkeys(figure.reason for _, phase in phases for figure in _figures(phase)))
        return Section(title, tuple(Fact("unavailable", reason, 11) for reason in reasons))
    other_rails = list(dict.fromkeys(rail.name for _, phase in phases for rail in phase.rails[2:]))
    columns = [
        *lead_columns(rows),
        Column("seed", align="left"),
        Column("phase", "the whole cell, its days, its questions", align="left"),
        Column("s", "length of the phase"),
        *(column for name, words in _RAILS for column in _rail_columns(name, words)),
        *(Column(f"{name.removesuffix('.rail_j')} J", "gross energy of this rail") for name in other_rails),
        Column("CPU s", "seconds of CPU over all cores, whoever used them"),
        *(Column(title, meaning) for _, _, title, meaning in _LOADS),
    ]
    body = []
    for row, phase in phases:
        rails = {rail.name: rail for rail in phase.rails}
        body.append(
            [
                *lead_cells(rows, row),
                Cell((phase.cell_id or "").rpartition("/")[2]),
                Cell(phase.phase),
                number(phase.duration_s),
                *(cell for name, _ in _RAILS for cell in _rail_cells(rails.get(name))),
                *(_cell(rails[name].gross_j, 0) if name in rails else NA for name in other_rails),
                _cell(phase.cpu_s, 1),
                *(_load(phase, channel, statistic) for channel, statistic, _, _ in _LOADS),
            ]
        )
    notes = [
        "gross: measured; net: less the machine at rest; a missing reading is never shown as 0",
        *_gpu_alone(phases),
        *_why(phases),
    ]
    return section(title, columns, body, notes, breaks=breaks([row for row, _ in phases]))


def footprint_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of memory and disk of each backend after its last day; None if they were not measured."""
    footprints = [(row, footprint) for row in rows if row.costs is not None for footprint in row.costs.footprints]
    if not footprints:
        return None
    columns = [
        *lead_columns(rows),
        Column("seed", align="left"),
        Column("memory MB", "in use after the last day; pages that processes share count once"),
        Column("peak MB", "highest since it was started: the sum of each process's own peak"),
        Column("disk MB", "files of its data folder"),
    ]
    body = [
        [
            *lead_cells(rows, row),
            Cell(footprint.cell_id.rpartition("/")[2]),
            *(_cell(figure, 1, _MB) for figure in _sizes(footprint)),
        ]
        for row, footprint in footprints
    ]
    reasons = dict.fromkeys(
        figure.reason for _, footprint in footprints for figure in _sizes(footprint) if figure.reason
    )
    notes = [f"unavailable: {reason}" for reason in reasons]
    return section("Memory and disk of backends", columns, body, notes, breaks=breaks([row for row, _ in footprints]))


def _rail_columns(name: str, words: str) -> list[Column]:
    scope = "the GPU alone, not the machine" if name == "gpu_rail_j" else "the whole machine"
    return [
        Column(f"{words} J", f"gross; {scope}"),
        Column(f"{words} net J"),
        Column(f"{words} W", "mean power"),
        Column(f"{words} J/query", "gross, by question; phases of 60 s or more"),
    ]


def _rail_cells(rail: RailMeasured | None) -> list[Cell]:
    if rail is None:
        return [NA] * 4
    return [_cell(rail.gross_j, 0), _cell(rail.net_j, 0), _cell(rail.mean_power_w, 1), _cell(rail.gross_j_per_query, 2)]


def _cell(figure: MeterFigure, digits: int, unit: float = 1.0) -> Cell:
    """Format a reading; ``void``, or n/a if this machine does not provide it, with the reason below the table."""
    if figure.value is None:
        return Cell("void", faint=True) if figure.status == "void" else NA
    return number(figure.value / unit, digits)


def _load(phase: PhaseMeasured, channel: str, statistic: str) -> Cell:
    for measurement in phase.channels:
        if measurement.channel == channel:
            return _cell(measurement.mean if statistic == "mean" else measurement.peak, 0)
    return NA


def _figures(phase: PhaseMeasured) -> list[MeterFigure]:
    return [*(rail.gross_j for rail in phase.rails), phase.cpu_s]


def _measured(figure: MeterFigure) -> bool:
    return figure.status != "unavailable"


def _sizes(footprint: FootprintTaken) -> tuple[MeterFigure, MeterFigure, MeterFigure]:
    return footprint.memory, footprint.memory_peak, footprint.disk


def _gpu_alone(phases: Sequence[tuple[ReportRow, PhaseMeasured]]) -> list[str]:
    gpu, system = (any(phase.rails[rail].gross_j.value is not None for _, phase in phases) for rail in (0, 1))
    return (
        ["the GPU's power leaves the CPU out: a memory that works on the CPU looks nearly free"] if gpu > system else []
    )


def _why(phases: Iterable[tuple[ReportRow, PhaseMeasured]]) -> list[str]:
    """Return notes on missing readings: each reason, and for void ones by kind of phase the first and a count."""
    unavailable: dict[tuple[str, str], None] = {}
    void: dict[tuple[str, str], list[str]] = {}
    for _, phase in phases:
        for name, figure in _named_figures(phase):
            if figure.status == "unavailable":
                unavailable[name, figure.reason] = None
            elif figure.status == "void":
                void.setdefault((name, phase.phase), []).append(f"{phase.cell_id}, {phase.phase}: {figure.reason}")
    return [
        *(f"{name} unavailable: {reason}" for name, reason in unavailable),
        *(
            f"{name} void in {len(phases_void)} of the phases, first {phases_void[0]}"
            for (name, _), phases_void in void.items()
        ),
    ]


def _named_figures(phase: PhaseMeasured) -> Iterator[tuple[str, MeterFigure]]:
    """Yield (name, reading) of a phase, without readings that are missing for the same reason as another."""
    for rail in phase.rails:
        yield rail.name, rail.gross_j
        if rail.gross_j.value is not None:
            yield f"net of {rail.name}", rail.net_j
            if phase.queries is not None:
                yield f"{rail.name} per query", rail.gross_j_per_query
    yield "CPU s", phase.cpu_s
