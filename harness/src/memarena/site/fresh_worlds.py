"""Compares a memory's certified rows on public worlds with those on fresh ones, which it cannot have been tuned to.

The seed of a fresh world follows from a commitment and from a value that a public beacon (a source of random numbers)
sent later. A memory that is better on public worlds may have been tuned to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memarena.report.brief_rows import FEWEST_QUESTIONS
from memarena.report.figures import few_egos
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.tables.comparison import difference_cells
from memarena.scoring.compare import Chosen, incomparable, unpaired_differences
from memarena.scoring.run import ScoredRun
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS, UnpairedDifference
from memarena.site.boards import Board, BoardRow
from memarena.site.ego_sums import FIGURES, EgoSums

_COLUMNS = (
    Column("figure", align="left"),
    Column("public world", align="left"),
    Column("fresh world", align="left"),
    Column("reader", align="left"),
    Column("public"),
    Column("fresh"),
    Column("public - fresh", "percentage points; above 0: better on the public world"),
    Column("95%", "interval of the difference; egos of the two worlds are drawn independently"),
)


def public_against_fresh(rows: Sequence[tuple[Board, BoardRow]]) -> Section | None:
    """Return the table of differences between public and fresh worlds for a memory; None if no rows can be compared.

    Rows are compared if they share version, options, reader, budget, protocol, judge and isolation; of several on one
    world only the latest counts.
    """
    latest: dict[tuple[object, ...], dict[str, BoardRow]] = {}
    for board, row in sorted(rows, key=lambda pair: (pair[1].entry.scores.started_at, pair[1].entry.entry_id)):
        scores = row.brief.scores
        if _sums(row) is not None:
            key = scores.backend_version, tuple(sorted(scores.options.items())), board.terms[1:]
            latest.setdefault(key, {})[board.dataset] = row
    differences: list[UnpairedDifference] = []
    cells = []
    for by_world in latest.values():
        for public in (row for row in by_world.values() if row.entry.public and not _fresh(row)):
            for fresh in filter(_fresh, by_world.values()):
                for difference in _differences(public, fresh):
                    differences.append(difference)
                    cells.append(_cells(public, fresh, difference))
    if not cells:
        return None
    with_few_egos = few_egos((FIGURES[difference.metric], difference.interval) for difference in differences)
    notes = (
        (f"fewer than {FEWEST_CLUSTERS} egos behind {with_few_egos}: these intervals cannot be relied on",)
        if with_few_egos
        else ()
    )
    return section("Public against fresh worlds", _COLUMNS, cells, notes, key="public-against-fresh")


def _differences(public: BoardRow, fresh: BoardRow) -> Iterator[UnpairedDifference]:
    if incomparable(_chosen(public), _chosen(fresh), same_world=False):
        return
    public_side, fresh_side = (
        row_sums.side(row.entry.scores.dataset.sha256) for row in (public, fresh) if (row_sums := _sums(row))
    )
    by_figure = {difference.metric: difference for difference in unpaired_differences(public_side, fresh_side)}
    yield from (by_figure[figure] for figure in FIGURES if figure in by_figure)


def _chosen(row: BoardRow) -> Chosen:
    scores = row.brief.scores
    return Chosen(ScoredRun(questions=(), scores=row.entry.scores), scores, scores.cells)


def _sums(row: BoardRow) -> EgoSums | None:
    """Return the sums of a certified row with enough questions for a share; else None."""
    sums = next((sums for sums in row.entry.ego_sums if sums.label == row.brief.scores.label), None)
    return sums if sums is not None and sums.questions >= FEWEST_QUESTIONS else None


def _fresh(row: BoardRow) -> bool:
    return row.entry.certificate is not None and row.entry.certificate.fresh_world


def _cells(public: BoardRow, fresh: BoardRow, difference: UnpairedDifference) -> list[Cell]:
    name, *figures = difference_cells(difference)[:-1]
    worlds = (
        Cell(row.entry.scores.dataset.name, link=f"../entries/{row.entry.entry_id}.html") for row in (public, fresh)
    )
    return [replace(name, text=f"{FIGURES[difference.metric]}, %"), *worlds, Cell(public.brief.scores.reader), *figures]
