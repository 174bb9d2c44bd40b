"""Builds the tables of item statistics: which questions discriminate between memories, and how many egos suffice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena.report.figures import NA, number, percent
from memarena.report.layout import Cell, Column, Document, Fact, Section, counted, section
from memarena.report.report_input import ReportInput
from memarena.report.tables.grid import FAMILY_NAMES
from memarena.scoring.items import DIFFERENCE, LEAST_MEMORIES, ItemStatistics, Known, item_statistics

_NAME_WIDTH = 13
_POINTS = f"{100 * DIFFERENCE:.0f} points"


def items_document(runs: Sequence[ReportInput]) -> Document:
    """Return the tables of item statistics, for each run, reader and measure."""
    parts = [
        _section(statistics, f", run {run.scores.run_id}" if len(runs) > 1 else "")
        for run in runs
        for statistics in item_statistics(run.scores.rows, run.questions)
    ]
    return Document("MemArena items", tuple(parts))


def _section(statistics: ItemStatistics, run: str) -> Section:
    columns = [
        Column("questions", align="left"),
        Column("items"),
        Column("difficulty", "mean share right over the memories, percent"),
        Column("discrimination", "median corrected item-total correlation over the memories"),
        Column("floor", "share of items that no memory has right, percent"),
        Column("ceiling", "share of items that every memory has right, percent"),
    ]
    body = [
        [
            Cell(FAMILY_NAMES.get(group.family, group.family)),
            Cell(f"{group.items:,}"),
            percent(group.difficulty),
            number(group.discrimination.value, 2) if group.discrimination.value is not None else NA,
            percent(group.floor),
            percent(group.ceiling),
        ]
        for group in statistics.groups
    ]
    table_section = section(
        f"Items: {statistics.measure}, {statistics.reader}{run}", columns, body, list(_reasons(statistics))
    )
    return Section(table_section.title, tuple(_lines(statistics)), table_section.table, table_section.notes)


def _lines(statistics: ItemStatistics) -> Iterator[Fact]:
    yield Fact("memories", ", ".join(statistics.memories), _NAME_WIDTH)
    yield Fact("competing", ", ".join(statistics.competitors) or "none", _NAME_WIDTH)
    yield Fact("egos", f"{statistics.egos:,}; left out: {counted(statistics.left_out, 'question')}", _NAME_WIDTH)
    yield Fact("reliability", _known(statistics.reliability, ".2f", "Cronbach's alpha over egos"), _NAME_WIDTH)
    most = statistics.most_egos_for_difference.value
    basis = f"median over pairs, for {_POINTS}" + ("" if most is None else f"; the pair that needs most: {most:,.0f}")
    yield Fact("egos needed", _known(statistics.egos_for_difference, ",.0f", basis), _NAME_WIDTH)


def _known(figure: Known, form: str, basis: str) -> str:
    return f"n/a: {figure.why_not}" if figure.value is None else f"{figure.value:{form}} ({basis})"


def _reasons(statistics: ItemStatistics) -> Iterator[str]:
    whys: dict[str, list[str]] = {}
    for group in statistics.groups:
        if group.discrimination.value is None:
            name = FAMILY_NAMES.get(group.family, group.family)
            whys.setdefault(group.discrimination.why_not, []).append(name)
    for reason, names in whys.items():
        yield f"discrimination n/a ({', '.join(names)}): {reason}"
    if LEAST_MEMORIES <= len(statistics.memories) < 10:
        yield f"a correlation over {len(statistics.memories)} memories says little of a single item: read the median"
