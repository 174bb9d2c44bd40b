"""Benchmarks of worlds: their verdicts, on figures that are known, and what they take for the same bytes."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def bench(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """A module of the benchmarks, which import one another as scripts of one folder do."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module(name)


def difference(metric: str, low: float | None) -> dict[str, Any]:
    """A figure of a comparison, as ``memarena compare --format json`` has it."""
    ends = None if low is None else {"low": low, "high": low + 0.3}
    return {"metric": metric, "a": 0.5, "b": 0.25, "difference": 0.25, "interval": ends, "questions": 40}


def test_a_gap_has_to_be_above_the_bar_at_its_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On D2 to D4; at the bar is not above it, and no interval is no pass."""
    separation = bench(monkeypatch, "bench_separation")
    found = [difference(name, low) for name, low in (("D1", 0.5), ("D2", 0.101), ("D3", 0.1), ("D4", None))]
    gaps = separation.gaps_of({"differences": found}, "oracle", "bm25")
    assert [(gap.dimension, gap.verdict) for gap in gaps] == [
        ("D1", ""),
        ("D2", "pass"),
        ("D3", "MISSED"),
        ("D4", "MISSED"),
    ]
    assert (gaps[1].a, gaps[1].b, gaps[1].low) == (50.0, 25.0, pytest.approx(10.1))


def test_a_dimension_that_was_not_compared_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, as is a policy without a figure."""
    separation = bench(monkeypatch, "bench_separation")
    found = [difference("D2", 0.2), {**difference("D3", None), "difference": None}, difference("D4", 0.2)]
    with pytest.raises(RuntimeError, match="oracle and bm25: no question of D3"):
        separation.gaps_of({"differences": found}, "oracle", "bm25")
    with pytest.raises(RuntimeError, match="no F1_PU of the policy 'always refuse'"):
        separation.trivial_of([{"name": "always refuse", "scores": {"D6": None}}])


def test_the_machine_is_no_part_of_the_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``run_info.json`` may differ; a byte of any other file may not."""
    preset_l = bench(monkeypatch, "bench_masim_l")
    for name in ("one", "two"):
        (tmp_path / name / "eval_instances").mkdir(parents=True)
        (tmp_path / name / "run_info.json").write_text(name)
        (tmp_path / name / "eval_instances" / "d7_qa.jsonl").write_text("{}\n")
    assert preset_l.digests(tmp_path / "one") == preset_l.digests(tmp_path / "two")
    (tmp_path / "two" / "eval_instances" / "d7_qa.jsonl").write_text("{} \n")
    assert preset_l.digests(tmp_path / "one") != preset_l.digests(tmp_path / "two")


def test_counts_are_of_the_world(monkeypatch: pytest.MonkeyPatch, small_world: Path) -> None:
    """Words counted in the corpus, questions without those of witness pairs."""
    counts = bench(monkeypatch, "bench_masim_l").counts_of(small_world)
    report = json.loads((small_world / "pipeline_report.json").read_text())
    assert counts["questions"] + counts["questions of witness pairs"] == report["counts"]["instances"]
    assert counts["turns"] == report["counts"]["turns"]
    assert 20 < counts["words"] / counts["turns"] < 100


def test_a_generation_that_fails_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last line is passed on; the memory of one that runs is looked at."""
    preset_l = bench(monkeypatch, "bench_masim_l")
    with pytest.raises(RuntimeError, match="no world today"):
        preset_l.watched([sys.executable, "-c", "raise SystemExit('no world today')"])
    made = preset_l.watched([sys.executable, "-c", "import time; kept = bytearray(64 << 20); time.sleep(1.5)"])
    assert made.single_mib > 64
