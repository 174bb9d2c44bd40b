"""Tests that the formulas give the paper's figures from the paper's own tables."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path
from statistics import fmean

import pytest
from memarena.paper.published import load_published
from memarena.paper.published_types import Figure, GridCell, SweepRow
from memarena.scoring import formulas

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
    rec = (cell.d1.value * n["D1"] + cell.d2.value * n["D2"]) / (n["D1"] + n["D2"])
    rea = (cell.d3.value * n["D3"] + cell.d4.value * n["D4"]) / (n["D3"] + n["D4"])
    assert rec == pytest.approx(cell.rec.value, abs=TOLERANCE)
    assert rea == pytest.approx(cell.rea.value, abs=TOLERANCE)


@pytest.mark.parametrize("cell", PUBLISHED.grid, ids=cell_id)
def test_the_average_is_the_mean_of_six_dimensions_with_d6_as_f1_pu(cell: GridCell) -> None:
    """D6 follows from Trust, whose mean with D5 it is; the per-dimension table prints another figure there."""
    d = [cell.d1, cell.d2, cell.d3, cell.d4, cell.d5]
    average = fmean([*(x.value for x in d), cell.f1_pu])
    assert average == pytest.approx(cell.avg.value, abs=TOLERANCE)
    assert (cell.d5.value + cell.f1_pu) / 2 == pytest.approx(cell.trust.value)
    assert fmean([x.value for x in d]) == pytest.approx(cell.avg_five.value, abs=TOLERANCE)


def test_the_older_accuracy_of_d6_does_not_give_the_grid() -> None:
    """A tolerance that let any D6 pass would prove nothing."""
    d6 = [(fmean([c.d1.value, c.d2.value, c.d3.value, c.d4.value, c.d5.value, c.d6_accuracy.value]), c)
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


# ------------------------------------------------------------------ against the tables as they were printed


def _figures(*figures: Figure | float | None) -> list[float]:
    """All numbers of figures: value, deviation, ends."""
    numbers: list[float] = []
    for figure in figures:
        if isinstance(figure, Figure):
            parts = (figure.value, figure.sd, figure.low, figure.high)
            numbers += [abs(part) for part in parts if part is not None]
        elif figure is not None:
            numbers.append(abs(figure))
    return numbers


def _typed() -> dict[str, list[float]]:
    """Our numbers of the tables that have records of their own."""
    p = PUBLISHED
    grid = p.grid
    return {
        "results-L-full": [
            n for c in grid for n in _figures(c.d1, c.d2, c.d3, c.d4, c.d5, c.d6_accuracy, c.avg_five)
        ],
        "results-L": [n for c in grid for n in _figures(c.rec, c.rea, c.trust, c.avg, c.ttft_ms)]
        + list({c.backend: c.search_ms for c in grid}.values()),
        "results-L-f1": [
            n
            for r in p.token_f1
            for n in _figures(r.conflict, r.anaphora, r.qa, r.temporal, r.counterfactual, r.metadata)
        ],
        "results-L-privacy": [n for r in p.privacy for n in _figures(r.withhold, r.false_refusal, r.utility)],
        "d6-ablation-buckets": [
            n for r in p.buckets for n in _figures(r.leak, r.no_access, r.dont_know, r.other, r.refusal_share)
        ],
        "d6-ablation-sweep": [
            n for r in p.sweep for n in _figures(float(r.cells), r.allow_disclosed, r.deny_leaked, r.f1_pu)
        ],
        "main-grid-bootstrap": [n for r in p.bootstrap for n in _figures(r.difference, r.low, r.high)],
        "appendix-latency-fit": [
            n
            for r in p.latency_fit
            for n in _figures(r.alpha_ms, r.beta_ms, r.gamma_ms, r.r2, float(r.observations), r.residual_p95_ms)
        ],
        "appendix-latency-predicted": [
            n for r in p.totals for n in _figures(r.vanilla, r.oracle, r.in_memory, r.memobase, r.memsearch)
        ],
        "efficiency": [
            n for r in p.efficiency for n in _figures(r.ttft_ms, r.decode_tokens_per_s, r.total_s, r.tokens)
        ],
        "appendix-ingest-overhead": [
            n
            for r in p.ingest
            for n in _figures(r.wall_s, r.energy_kj, r.batches and float(r.batches), r.j_per_ego_day, r.mean_w)
        ],
    }  # fmt: skip


PRINTED_TABLES = {table.name: [n for row in table.rows for n in _figures(*row.figures)] for table in PUBLISHED.printed}
FIRST: dict[str, tuple[int, int]] = {
    "results-L-full": (2, 2), "results-L": (1, 1), "results-L-f1": (2, 2), "results-L-privacy": (1, 2),
    "d6-ablation-buckets": (1, 2), "d6-ablation-sweep": (1, 2), "main-grid-bootstrap": (1, 3),
    "appendix-ingest-overhead": (1, 2), "efficiency": (1, 2), "appendix-cross-extractor-writer32": (2, 2),
    "cross-family-readers": (2, 2), "p1a-budget": (1, 2), "policy-header": (2, 1), "reranker-baseline": (1, 2),
    "review5-rag-prompt": (4, 1), "wave1-perdim": (1, 2), "wave1-summary": (1, 2),
}  # fmt: skip
"""(row, column) of a table's first figure, where it is not in the second row and second column."""
LEFT_OUT: dict[str, set[int]] = {
    "d6-ablation-sweep": {5}, "main-grid-bootstrap": {6}, "mistral-structured": {5}, "reranker-baseline": {5, 6},
}  # fmt: skip
"""Columns that are not compared: they follow from others, hold p-values or seed counts, or contradict the grid."""
IN_WORDS = {"ablation-summary"}
"""Tables of which the paper has sentences, and no figure of its own in a cell."""
ROWS_LEFT_OUT = {"d6-ablation-buckets": {"Pooled"}, "appendix-latency-predicted": {"T_search (ms, p50)"}}
"""Rows that follow from others, or that stand in another table too."""


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the published tables are not at {SHARED} (MEMARENA_SHARED)")
@pytest.mark.parametrize("name", sorted({*_typed(), *PRINTED_TABLES} - IN_WORDS))
def test_the_data_file_holds_every_figure_of_the_published_tables(name: str) -> None:
    """Each number printed in a table, deviations and ends of intervals too, stands in it as often, without its sign."""
    assert sorted((_typed() | PRINTED_TABLES)[name]) == sorted(_printed(name))


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the published tables are not at {SHARED} (MEMARENA_SHARED)")
def test_every_published_table_with_figures_is_held() -> None:
    there = {path.stem for path in SHARED.glob("*.csv")}
    assert there - set(_typed()) - set(PRINTED_TABLES) == {"appendix-scoring-families", "paper-internal-dims"}


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the published tables are not at {SHARED} (MEMARENA_SHARED)")
def test_figures_that_the_paper_has_in_a_sentence_stand_there() -> None:
    [paper] = (SHARED.parents[1] / "reference").glob("*.txt")
    by_reader = "/".join(f"{number:g}" for number in PRINTED_TABLES["ablation-summary"])
    assert f"Omniscient trails Oracle by ${by_reader}$" in paper.read_text(encoding="utf-8")


def test_signs_are_kept() -> None:
    """The comparison above leaves signs out, since a range is printed with a dash."""
    assert {r.difference < 0 for r in PUBLISHED.bootstrap} == {True}
    markers = next(t for t in PUBLISHED.printed if t.name == "appendix-access-markers")
    assert [f.value for row in markers.rows if (f := row.figures[2])] == [-9.5, 3.8, 3.3, -7.9, 7.6, -0.5]
    assert [r.alpha_ms for r in PUBLISHED.latency_fit] == [-74.5, -60.2, -167.1, -650.9]


def _printed(name: str) -> list[float]:
    """Figures in the cells of a table, as it prints them."""
    with (SHARED / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    row, column = FIRST.get(name, (1, 1))
    left_out = LEFT_OUT.get(name, set())
    cells = [
        c
        for r in rows[row:]
        if not (r and r[0] in ROWS_LEFT_OUT.get(name, set()))
        for at, c in enumerate(r)
        if at >= column and at not in left_out
    ]
    if name == "results-L":
        cells = [re.sub(r"\(.*?\)", "", c) for c in cells]  # the gap to Vanilla follows from the others
    if name == "wave1-summary":
        cells = [re.sub(r"\(.*?\)|D6", "", c) for c in cells]  # names of families and dimensions
    return [float(m.replace(",", "")) for c in cells for m in re.findall(r"\d[\d,]*(?:\.\d+)?", c)]
