"""Our formulas give the paper's own figures from the paper's own tables."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest
from memarena.scoring import formulas
from memarena.scoring.published import load_published
from memarena.scoring.published_types import GridCell, SweepRow

SHARED = Path(os.environ.get("MEMARENA_SHARED", str(Path(__file__).parents[3] / "shared"))) / "data" / "published"
TOLERANCE = 0.1
PRINTED = 0.05 + 1e-9
"""Half a unit of the last printed digit."""
PUBLISHED = load_published()


def cell_id(cell: GridCell) -> str:
    return f"{cell.backend}-{cell.reader}"


def test_the_grid_has_every_backend_under_every_reader() -> None:
    assert len(PUBLISHED.grid) == 25
    assert len({(c.backend, c.reader) for c in PUBLISHED.grid}) == 25
    assert PUBLISHED.cell("RAG", "Qwen3-8B") is not None
    assert PUBLISHED.cell("bm25", "Qwen3-8B") is None
    assert sum(PUBLISHED.family_counts.values()) == 1579


@pytest.mark.parametrize("cell", PUBLISHED.grid, ids=cell_id)
def test_recall_and_reasoning_follow_from_the_dimensions_and_the_counts(cell: GridCell) -> None:
    n = PUBLISHED.family_counts
    rec = formulas.recall((cell.d1.value, n["D1"]), (cell.d2.value, n["D2"]))
    rea = formulas.reasoning((cell.d3.value, n["D3"]), (cell.d4.value, n["D4"]))
    assert rec == pytest.approx(cell.rec.value, abs=TOLERANCE)
    assert rea == pytest.approx(cell.rea.value, abs=TOLERANCE)


@pytest.mark.parametrize("cell", PUBLISHED.grid, ids=cell_id)
def test_the_average_is_the_mean_of_six_dimensions_with_d6_as_f1_pu(cell: GridCell) -> None:
    """D6 follows from Trust, whose mean with D5 it is; the per-dimension table prints another figure there."""
    d = [cell.d1, cell.d2, cell.d3, cell.d4, cell.d5]
    average = formulas.average([*(x.value for x in d), cell.f1_pu])
    assert average == pytest.approx(cell.avg.value, abs=TOLERANCE)
    assert formulas.trust(cell.d5.value, cell.f1_pu) == pytest.approx(cell.trust.value)
    assert formulas.mean_of([x.value for x in d]) == pytest.approx(cell.avg_five.value, abs=TOLERANCE)


def test_the_older_accuracy_of_d6_does_not_give_the_grid() -> None:
    """A tolerance that let any D6 pass would prove nothing."""
    d6 = [(formulas.average([c.d1.value, c.d2.value, c.d3.value, c.d4.value, c.d5.value, c.d6_accuracy.value]), c)
          for c in PUBLISHED.grid]  # fmt: skip
    assert sum(abs((average or 0) - c.avg.value) > TOLERANCE for average, c in d6) >= 20


@pytest.mark.parametrize("row", PUBLISHED.sweep, ids=lambda r: f"{r.lever}-{r.variant}")
def test_f1_pu_follows_from_what_was_disclosed_and_leaked(row: SweepRow) -> None:
    """Rounded as printed: the shares are printed to 0.1 too, and one of them is 0.3."""
    f1_pu = formulas.f1_pu(1 - row.deny_leaked / 100, row.allow_disclosed / 100)
    assert round(100 * f1_pu, 1) == pytest.approx(row.f1_pu, abs=TOLERANCE + 1e-9)


def test_no_published_lever_gates() -> None:
    """U + P - 1 is at most 0.01 in every row: what is told to one is told to all."""
    assert len(PUBLISHED.sweep) == 16
    assert all(formulas.youden_j(1 - r.deny_leaked / 100, r.allow_disclosed / 100) <= 0.01 for r in PUBLISHED.sweep)


@pytest.mark.parametrize("row", PUBLISHED.buckets, ids=lambda r: f"{r.backend}-{r.reader}")
def test_what_happened_on_deny_items_adds_up(row: object) -> None:
    parts = [getattr(row, name) for name in ("leak", "no_access", "dont_know", "other")]
    assert sum(parts) == pytest.approx(100, abs=4 * PRINTED)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the published tables are not at {SHARED} (MEMARENA_SHARED)")
def test_the_data_file_holds_every_figure_of_the_published_tables() -> None:
    """Each number printed in the tables that it claims to hold stands in it as often as they print it."""
    for name, records in {
        "results-L-full": [
            v.value for c in PUBLISHED.grid for v in (c.d1, c.d2, c.d3, c.d4, c.d5, c.d6_accuracy, c.avg_five)
        ],
        "results-L": [v.value for c in PUBLISHED.grid for v in (c.rec, c.rea, c.trust, c.avg, c.ttft_ms) if v],
        "d6-ablation-sweep": [v for r in PUBLISHED.sweep for v in (r.allow_disclosed, r.deny_leaked, r.f1_pu)],
        "main-grid-bootstrap": [v for r in PUBLISHED.bootstrap for v in (r.difference, r.low, r.high)],
    }.items():
        assert sorted(records) == sorted(_printed(name)), name


def _printed(name: str) -> list[float]:
    """Leading figures of the cells of a table, as it prints them."""
    with (SHARED / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    first = {"results-L-full": (2, 2), "results-L": (2, 2), "d6-ablation-sweep": (1, 3), "main-grid-bootstrap": (1, 3)}
    row, column = first[name]
    left_out = {"d6-ablation-sweep": {5}, "main-grid-bootstrap": {6}}.get(name, set())
    cells = [c for r in rows[row:] for at, c in enumerate(r) if at >= column and at not in left_out]
    return [float(m.group()) for c in cells if (m := re.match(r"[+-]?\d+(?:\.\d+)?", c.strip()))]
