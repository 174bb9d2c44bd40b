"""Tests the formulas: their laws, and that they reproduce the paper's published tables from the tables' own parts."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.scoring import formulas

SHARED = Path(os.environ.get("MEMARENA_SHARED", Path(__file__).parents[3] / "shared"))
PUBLISHED = SHARED / "data" / "published"
needs_tables = pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"published tables are not at {PUBLISHED}")

N = {"D1": 198, "D2": 169, "D3": 502, "D4": 340}
"""Questions per dimension of the released data set."""
SHARES = st.floats(0, 1)
BACKENDS = ("Vanilla", "RAG", "Memobase", "MemSearch", "Oracle")


def pooled(first: float, n: int, second: float, m: int) -> float:
    """Return the mean of two dimensions, weighted by their numbers of questions."""
    return (first * n + second * m) / (n + m)


def table(name: str) -> list[list[str]]:
    with (PUBLISHED / name).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def figure(text: str) -> float:
    """The first number of a cell such as ``44.5 ±2.2 (+10.2)``."""
    return float(text.split(maxsplit=1)[0])


def main_grid() -> dict[tuple[str, str], dict[str, float]]:
    """Return Rec, Rea, Trust and Avg by (backend, reader)."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    reader = ""
    for row in table("results-L.csv")[2:]:
        reader = row[0] or reader
        for backend, cell in zip(BACKENDS, row[2:], strict=True):
            cells.setdefault((backend, reader), {})[row[1].rstrip(".")] = figure(cell)
    return cells


def dimensions() -> dict[tuple[str, str], dict[str, float]]:
    """Return D1 to D5 by (backend, reader)."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    backend = ""
    for row in table("results-L-full.csv")[2:]:
        backend = row[0] or backend
        cells[backend, row[1]] = {f"D{n}": figure(row[n + 1]) for n in range(1, 6)}
    return cells


@needs_tables
def test_the_main_grid_follows_from_its_dimensions() -> None:
    """Recall, Reasoning and Avg of all 25 cells within 0.1, with F1_PU = 2 · Trust - D5."""
    grid, parts = main_grid(), dimensions()
    assert len(grid) == len(parts) == 25
    for cell, published in grid.items():
        d = parts[cell]
        f1_pu = 2 * published["Trust"] - d["D5"]
        assert pooled(d["D1"], N["D1"], d["D2"], N["D2"]) == pytest.approx(published["Rec"], abs=0.1)
        assert pooled(d["D3"], N["D3"], d["D4"], N["D4"]) == pytest.approx(published["Rea"], abs=0.1)
        assert fmean([*d.values(), f1_pu]) == pytest.approx(published["Avg"], abs=0.1)
        assert (d["D5"] + f1_pu) / 2 == pytest.approx(published["Trust"])


@needs_tables
def test_the_permission_sweep_follows_from_its_shares() -> None:
    """F1_PU of all 16 rows within 0.1 from the shares disclosed on ALLOW and leaked on DENY."""
    rows = table("d6-ablation-sweep.csv")[1:]
    assert len(rows) == 16
    for row in rows:
        utility, leaked, published = (float(row[i]) / 100 for i in (3, 4, 6))
        assert round(100 * formulas.f1_pu(1 - leaked, utility), 1) == pytest.approx(100 * published, abs=0.1001), row


@needs_tables
def test_no_published_oracle_cell_gates() -> None:
    """Its leaks on DENY outweigh its disclosures on ALLOW, so U + P - 1 lies below 0 for every reader."""
    readers = [row for row in table("d6-ablation-sweep.csv")[1:] if row[1].startswith(("Qwen", "Llama", "Mistral"))]
    assert len(readers) == 5
    assert all(formulas.youden_j(1 - float(r[4]) / 100, float(r[3]) / 100) < 0 for r in readers)


@given(SHARES, SHARES)
def test_f1_pu_is_a_harmonic_mean(privacy: float, utility: float) -> None:
    value = formulas.f1_pu(privacy, utility)
    assert min(privacy, utility) - 1e-12 <= value <= max(privacy, utility) + 1e-12
    assert value == formulas.f1_pu(utility, privacy)
    assert (value == 0) is (privacy == 0 or utility == 0) or value < 1e-300


def test_an_undefined_figure_is_na_and_not_zero() -> None:
    assert formulas.sample_sd([0.5]) is None
    assert formulas.chance_corrected(1.0, 1.0) is None


@given(SHARES, st.floats(0, 0.99))
def test_chance_correction_maps_chance_to_zero_and_perfect_to_one(score: float, chance: float) -> None:
    assert formulas.chance_corrected(chance, chance) == pytest.approx(0)
    assert formulas.chance_corrected(1.0, chance) == pytest.approx(1)
    corrected = formulas.chance_corrected(score, chance)
    assert corrected is not None
    assert (corrected > 0) is (score > chance)


def test_the_intervals_are_those_of_the_literature() -> None:
    """Wilson's for 81 of 263, Newcombe's (method 10) for 56/70 - 48/80 (Newcombe 1998, table II, contrast a)."""
    assert formulas.wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert formulas.difference_interval(56 / 70, 70, 48 / 80, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@given(k=st.integers(0, 30), n=st.integers(1, 30))
def test_wilsons_interval_holds_the_share(k: int, n: int) -> None:
    share = min(k, n) / n
    low, high = formulas.wilson(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
