"""Benchmarks of worlds: their verdicts, on figures that are known, and what they take for the same bytes."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from memarena.log.records import AnyRecord
from memarena.scoring.compare import across_worlds, choose, compare
from memarena.scoring.results import Baseline
from memarena.scoring.run import ScoredRun
from memarena.scoring.uncertainty_records import Comparison, Interval, PairedDifference, Side
from memarena_dataset.model import Family

from ..support.logs import make_asked, make_cell, make_question, make_run, text_gold
from ..support.scoring import score_records

BENCH = Path(__file__).parents[2] / "bench"


def bench(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """A module of the benchmarks, which import one another as scripts of one folder do."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module(name)


def ends(low: float) -> Interval:
    return Interval(low=low, high=low + 0.3, se=0.1, method="bootstrap_egos", clusters=9)


def comparison(*lows: tuple[str, float | None], absent: str = "") -> Comparison:
    """A comparison in which each named figure is 25 points higher on one side, with an interval from ``low`` on."""
    differences = [
        PairedDifference(
            metric=metric,
            a=0.5,
            b=0.25,
            difference=0.25,
            interval=None if low is None else ends(low),
            p_diagnostic=None,
            smallest_difference=None,
            questions=40,
            only_a=10,
            only_b=0,
        )
        for metric, low in lows
    ]
    kept = [one.model_copy(update={"difference": None}) if one.metric == absent else one for one in differences]
    side = Side(run_id="r", label="oracle@extractive", seeds=("s1",))
    return Comparison(a=side, b=side, incomparable=(), cautions=(), questions=40, left_out=0, differences=tuple(kept))


def test_a_gap_has_to_be_above_the_bar_at_its_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On D2 to D4; at the bar is not above it, and no interval is no pass."""
    separation = bench(monkeypatch, "bench_separation")
    found = comparison(("D1", 0.5), ("D2", 0.101), ("D3", 0.1), ("D4", None))
    gaps = separation.gaps_of(found, "oracle", "bm25")
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
    found = comparison(("D2", 0.2), ("D3", None), ("D4", 0.2), absent="D3")
    with pytest.raises(RuntimeError, match="oracle and bm25: no question of D3"):
        separation.gaps_of(found, "oracle", "bm25")
    with pytest.raises(RuntimeError, match="no F1_PU of the policy 'always refuse'"):
        separation.trivial_of([Baseline(name="always refuse", scores={"D6": None})])


CELLS = [make_cell(backend, seed="s1") for backend in ("bm25", "oracle")]
POOL = [
    make_question(f"q_{ego}_{number}", Family.METADATA, text_gold("Porto"), "Where?", ego=f"e{ego}")
    for ego in range(6)
    for number in range(10)
]


def world(number: int) -> ScoredRun:
    """One of several worlds whose people and questions bear the same ids; oracle knows a few answers more."""
    asked: list[AnyRecord] = []
    for place, question in enumerate(POOL):
        for cell in CELLS:
            knows = (place * 7 + number) % 10 < (5 if cell.backend == "oracle" else 3)
            asked.append(make_asked(cell, question, "Porto" if knows else "Lisbon"))
    made = make_run(CELLS, POOL, [], asked)
    assert made[0].kind == "run_started"
    dataset = made[0].manifest.dataset.model_copy(update={"sha256": f"{number:02x}" * 32})
    manifest = made[0].manifest.model_copy(update={"dataset": dataset})
    return score_records([made[0].model_copy(update={"manifest": manifest, "run_id": f"run-{number}"}), *made[1:]])


def test_the_egos_of_all_worlds_are_drawn_and_each_world_stands_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """People of the same id in two worlds are two people; the figure is over the questions of all worlds."""
    separation = bench(monkeypatch, "bench_separation")
    runs = [world(number) for number in range(4)]
    together = separation.pooled(runs)
    assert len({one.ego for one in together.questions}) == 24
    found = compare(choose(together, "oracle@small"), choose(together, "bm25@small"))
    (d2,) = [one for one in found.differences if one.metric == "D2"]
    assert d2.questions == 240
    assert d2.interval is not None
    assert d2.interval.clusters == 24
    across = across_worlds([(choose(run, "oracle@small"), choose(run, "bm25@small")) for run in runs])
    (beside,) = [one for one in across.differences if one.metric == "D2"]
    assert d2.difference == pytest.approx(beside.mean)  # worlds of the same size


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
