"""Builds the tables of growth: Search, memory and disk by length of history."""

from __future__ import annotations

from memarena.latency.report.cells import floor_text, machine_text, meter_cell, reasons
from memarena.latency.results import Growth
from memarena.report.figures import milliseconds, number, whole
from memarena.report.layout import Cell, Column, Document, Fact, Section, section


def growth_document(growth: Growth) -> Document:
    """Return the tables of growth: of the backends, and of sidecar servers that were measured too."""
    parts = (_growth_head(growth), _growth(growth), _sidecar_section(growth))
    return Document("Growth", tuple(part for part in parts if part is not None))


def _growth_head(growth: Growth) -> Section:
    """Return what was measured, on which data, and which backends failed."""
    data = growth.dataset
    lines = (
        Fact("data set", f"{data.name} (sha256 {data.sha256[:12]}), ego {', '.join(growth.egos)}"),
        Fact("searches", f"over {growth.queries} questions in turn, after each number of days"),
        Fact("floor", floor_text(growth.floor)),
        Fact("machine", machine_text(growth.versions)),
    )
    notes = [f"{name}: {reason}" for name, reason in growth.failed.items()]
    if growth.state not in ("completed", ""):
        notes.insert(0, f"the run is not complete: {growth.state}")
    return Section("What was measured", lines, notes=tuple(notes))


def _growth(growth: Growth) -> Section:
    """Return the table with a row for each backend and length of history."""
    columns = [
        Column("backend", align="left"),
        Column("days"),
        Column("turns", "in the memory"),
        Column("n", "searches"),
        Column("search p50", "ms"),
        Column("· p90"),
        Column("· p95"),
        Column("min"),
        Column("max"),
        Column("ingest s", "all days so far"),
        Column("memory MB", "in use after the day; shared pages count once"),
        Column("peak MB"),
        Column("disk MB"),
    ]
    body = [
        [
            Cell(point.backend),
            whole(point.days),
            whole(point.turns),
            whole(point.search.n),
            milliseconds(point.search.p50),
            milliseconds(point.search.p90),
            milliseconds(point.search.p95),
            milliseconds(point.search_min_ms),
            milliseconds(point.search_max_ms),
            number(point.ingest_s, 2),
            meter_cell(point.footprint.memory, 1, 1e6),
            meter_cell(point.footprint.memory_peak, 1, 1e6),
            meter_cell(point.footprint.disk, 2, 1e6),
        ]
        for point in growth.points
    ]
    backends = [point.backend for point in growth.points]
    rules = [index for index in range(1, len(backends)) if backends[index] != backends[index - 1]]
    figures = [(name, getattr(p.footprint, name)) for p in growth.points for name in ("memory", "memory_peak", "disk")]
    return section("Search, memory and disk by length of history", columns, body, reasons(figures), breaks=rules)


def _sidecar_section(growth: Growth) -> Section | None:
    """Return the table of sidecar servers, which the backends' memory and disk do not include; None without any."""
    if not any(point.beside for point in growth.points):
        return None
    columns = [
        Column("backend", align="left"),
        Column("days"),
        Column("server", "it may serve several backends, and holds what earlier ones left in it", align="left"),
        Column("memory MB", "after the searches of the day; shared pages count once"),
        Column("peak MB", "since it started"),
        Column("disk MB"),
    ]
    body = []
    figures = []
    for point in growth.points:
        for footprint in point.beside:
            by_name = (("memory", footprint.memory), ("memory_peak", footprint.memory_peak), ("disk", footprint.disk))
            figures += [(f"{footprint.name} {name}", figure) for name, figure in by_name]
            cells = [meter_cell(figure, 2 if name == "disk" else 1, 1e6) for name, figure in by_name]
            body.append([Cell(point.backend), whole(point.days), Cell(footprint.name), *cells])
    notes = [
        f"{point.backend} after {point.days} days: not taken (the run was resumed by another command)"
        for point in growth.points
        if not point.beside
    ]
    return section("Servers next to the backends", columns, body, [*notes, *reasons(figures)])
