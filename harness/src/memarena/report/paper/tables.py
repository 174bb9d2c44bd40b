"""The paper's tables without a counterpart of ours: permission, ablations, agreement of judge and people."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.paper.published_types import Figure, PrintedTable, Published
from memarena.report.figures import NA, metric, number, percent
from memarena.report.layout import Cell, Column, Fact, Section, section
from memarena.report.rows import ReportRow, backend_name, reader_name
from memarena.scoring import formulas

ALWAYS = ("judge-human",)
"""Shown whatever the run is."""


def reference_sections(
    rows: Sequence[ReportRow], published: Published, configurations: frozenset[str]
) -> list[Section]:
    """Variations of D6 with our rows on top, tables of a run's ablation, how the judge agreed with people."""
    always = [t for t in published.printed if t.name in ALWAYS or configurations & set(t.configurations)]
    on_demand = [t for t in published.printed if t not in always and t.configurations]
    last = [Section("Other published tables", tuple(_where(t) for t in on_demand))] if on_demand else []
    return [_levers(rows, published), *(_printed(table) for table in always), *last]


def _levers(rows: Sequence[ReportRow], published: Published) -> Section:
    """Permission of our rows above the paper's sixteen variations."""
    body: list[list[Cell]] = []
    for row in rows:
        if row.scores.permission is not None:
            names = [Cell("ours"), Cell(backend_name(rows, row)), Cell(reader_name(row))]
            body.append([*names, *(metric(row.scores, name) for name in ("U", "P", "D6", "J"))])
    rules = [len(body)] if body else []
    for lever in published.sweep:
        utility, privacy = lever.allow_disclosed / 100, 1 - lever.deny_leaked / 100
        j = formulas.youden_j(privacy, utility)
        shares = [percent(utility), percent(privacy), number(lever.f1_pu), percent(j)]
        body.append([Cell("paper"), Cell(lever.lever), Cell(lever.variant), *shares])
    columns = [
        Column("whose", align="left"),
        Column("lever", "ours: the backend", align="left"),
        Column("variant", "ours: the reader", align="left"),
        Column("U", "disclosed on ALLOW items, percent"),
        Column("P", "withheld on DENY items"),
        Column("F1_PU", "harmonic mean of both"),
        Column("J", "U + P - 1: 0 = ignores the asker"),
    ]
    return section(
        "Published variations of permission", columns, body, ["from the paper's d6-ablation-sweep"], breaks=rules
    )


def _printed(table: PrintedTable) -> Section:
    columns = [*(Column(name, align="left") for name in table.labels), *(Column(name) for name in table.columns)]
    body = [
        [*(Cell(label) for label in row.labels), *(_as_printed(figure) for figure in row.figures)] for row in table.rows
    ]
    notes = [f"the paper's {table.name}", *([table.note] if table.note else [])]
    return section(f"Published: {table.title}", columns, body, notes)


def _as_printed(figure: Figure | None) -> Cell:
    if figure is None:
        return NA
    spread = f" ±{figure.sd:g}" if figure.sd is not None else ""
    ends = f" [{figure.low:,.9g}, {figure.high:,.9g}]" if figure.low is not None and figure.high is not None else ""
    after = spread + ends
    return Cell(f"{figure.value:,.9g}{after}", spread=after if spread else "")


def _where(table: PrintedTable) -> Fact:
    return Fact(table.title, f"in reports of memarena run {' or '.join(table.configurations)}", width=0)
