"""Item statistics as tables: which questions tell memories apart, and how many people it takes."""

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
    """Item statistics of every run, reader and measure."""
    parts = [
        _section(each, f", run {run.scores.run_id}" if len(runs) > 1 else "")
        for run in runs
        for each in item_statistics(run.scores.rows, run.questions)
    ]
    return Document("MemArena items", tuple(parts))


def _section(found: ItemStatistics, run: str) -> Section:
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
        for group in found.groups
    ]
    made = section(f"Items: {found.measure}, {found.reader}{run}", columns, body, list(_reasons(found)))
    return Section(made.title, tuple(_lines(found)), made.table, made.notes)


def _lines(found: ItemStatistics) -> Iterator[Fact]:
    yield Fact("memories", ", ".join(found.memories), _NAME_WIDTH)
    yield Fact("competing", ", ".join(found.competitors) or "none", _NAME_WIDTH)
    yield Fact("egos", f"{found.egos:,}; left out: {counted(found.left_out, 'question')}", _NAME_WIDTH)
    yield Fact("reliability", _known(found.reliability, ".2f", "Cronbach's alpha over egos"), _NAME_WIDTH)
    most = found.most_egos_for_difference.value
    what = f"median over pairs, for {_POINTS}" + ("" if most is None else f"; the pair that needs most: {most:,.0f}")
    yield Fact("egos needed", _known(found.egos_for_difference, ",.0f", what), _NAME_WIDTH)


def _known(figure: Known, form: str, what: str) -> str:
    return f"n/a: {figure.why_not}" if figure.value is None else f"{figure.value:{form}} ({what})"


def _reasons(found: ItemStatistics) -> Iterator[str]:
    whys: dict[str, list[str]] = {}
    for group in found.groups:
        if group.discrimination.value is None:
            name = FAMILY_NAMES.get(group.family, group.family)
            whys.setdefault(group.discrimination.why_not, []).append(name)
    for why, names in whys.items():
        yield f"discrimination n/a ({', '.join(names)}): {why}"
    if LEAST_MEMORIES <= len(found.memories) < 10:
        yield f"a correlation over {len(found.memories)} memories says little of a single item: read the median"
