"""Tests bench/bench_separation.py (verdicts on gaps between memories) and bench/bench_masim_l.py (digests, counts)."""

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
    """Import a module of bench/, a folder of scripts that import one another."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module(name)


def interval_from(low: float) -> Interval:
    return Interval(low=low, high=low + 0.3, se=0.1, method="bootstrap_egos", clusters=9)


def comparison(*lows: tuple[str, float | None], absent: str = "") -> Comparison:
    """A comparison in which each named figure is 25 points higher on one side, with an interval from ``low`` on."""
    differences = [
        PairedDifference(
            metric=metric,
            a=0.5,
            b=0.25,
            difference=0.25,
            interval=None if low is None else interval_from(low),
            p_diagnostic=None,
            smallest_difference=None,
            questions=40,
            only_a=10,
            only_b=0,
        )
        for metric, low in lows
    ]
    differences = [
        difference.model_copy(update={"difference": None}) if difference.metric == absent else difference
        for difference in differences
    ]
    side = Side(run_id="r", label="oracle@extractive", seeds=("s1",))
    return Comparison(
        a=side, b=side, incomparable=(), cautions=(), questions=40, left_out=0, differences=tuple(differences)
    )


def test_a_gap_passes_if_the_lower_end_of_its_interval_is_above_ten_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """On D2 to D4. A lower end equal to the threshold fails; so does a missing interval."""
    separation = bench(monkeypatch, "bench_separation")
    compared = comparison(("D1", 0.5), ("D2", 0.101), ("D3", 0.1), ("D4", None))
    gaps = separation.gaps_of(compared, "oracle", "bm25")
    assert [(gap.dimension, gap.verdict) for gap in gaps] == [
        ("D1", ""),
        ("D2", "pass"),
        ("D3", "MISSED"),
        ("D4", "MISSED"),
    ]
    assert (gaps[1].a, gaps[1].b, gaps[1].low) == (50.0, 25.0, pytest.approx(10.1))


def test_gaps_raise_for_a_dimension_without_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    separation = bench(monkeypatch, "bench_separation")
    compared = comparison(("D2", 0.2), ("D3", None), ("D4", 0.2), absent="D3")
    with pytest.raises(RuntimeError, match="oracle and bm25: no question of D3"):
        separation.gaps_of(compared, "oracle", "bm25")


def test_trivial_policies_raise_for_a_policy_without_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    separation = bench(monkeypatch, "bench_separation")
    with pytest.raises(RuntimeError, match="no F1_PU of the policy 'always refuse'"):
        separation.trivial_of([Baseline(name="always refuse", scores={"D6": None})])


CELLS = [make_cell(backend, seed="s1") for backend in ("bm25", "oracle")]
POOL = [
    make_question(f"q_{ego}_{number}", Family.METADATA, text_gold("Porto"), "Where?", ego=f"e{ego}")
    for ego in range(6)
    for number in range(10)
]


def world(number: int) -> ScoredRun:
    """One of several worlds whose people and questions have the same ids; of ten questions oracle knows 5, bm25 3."""
    answers: list[AnyRecord] = []
    for index, question in enumerate(POOL):
        for cell in CELLS:
            knows = (index * 7 + number) % 10 < (5 if cell.backend == "oracle" else 3)
            answers.append(make_asked(cell, question, "Porto" if knows else "Lisbon"))
    started, *rest = make_run(CELLS, POOL, [], answers)
    assert started.kind == "run_started"
    dataset = started.manifest.dataset.model_copy(update={"sha256": f"{number:02x}" * 32})
    manifest = started.manifest.model_copy(update={"dataset": dataset})
    return score_records([started.model_copy(update={"manifest": manifest, "run_id": f"run-{number}"}), *rest])


def test_pooling_keeps_equal_ego_ids_of_two_worlds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four worlds of six egos are 24 egos; the pooled difference is the mean over worlds, which have the same size."""
    separation = bench(monkeypatch, "bench_separation")
    runs = [world(number) for number in range(4)]
    together = separation.pooled(runs)
    assert len({question.ego for question in together.questions}) == 24
    compared = compare(choose(together, "oracle@small"), choose(together, "bm25@small"))
    (d2,) = [difference for difference in compared.differences if difference.metric == "D2"]
    assert d2.questions == 240
    assert d2.interval is not None
    assert d2.interval.clusters == 24
    across = across_worlds([(choose(run, "oracle@small"), choose(run, "bm25@small")) for run in runs])
    (over_worlds,) = [difference for difference in across.differences if difference.metric == "D2"]
    assert d2.difference == pytest.approx(over_worlds.mean)


def test_digests_ignore_run_info_and_no_other_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``run_info.json`` names the machine and the time, which may differ between equal worlds."""
    preset_l = bench(monkeypatch, "bench_masim_l")
    for name in ("one", "two"):
        (tmp_path / name / "eval_instances").mkdir(parents=True)
        (tmp_path / name / "run_info.json").write_text(name)
        (tmp_path / name / "eval_instances" / "d7_qa.jsonl").write_text("{}\n")
    assert preset_l.digests(tmp_path / "one") == preset_l.digests(tmp_path / "two")
    (tmp_path / "two" / "eval_instances" / "d7_qa.jsonl").write_text("{} \n")
    assert preset_l.digests(tmp_path / "one") != preset_l.digests(tmp_path / "two")


def test_counts_agree_with_the_generator_s_report(monkeypatch: pytest.MonkeyPatch, small_world: Path) -> None:
    """Questions of witness pairs (docs/simulator.md) are counted separately."""
    counts = bench(monkeypatch, "bench_masim_l").counts_of(small_world)
    report = json.loads((small_world / "pipeline_report.json").read_text())
    assert counts["questions"] + counts["questions of witness pairs"] == report["counts"]["instances"]
    assert counts["turns"] == report["counts"]["turns"]
    assert 20 < counts["words"] / counts["turns"] < 100


def test_watched_raises_with_the_last_line_of_a_program_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    preset_l = bench(monkeypatch, "bench_masim_l")
    with pytest.raises(RuntimeError, match="no world today"):
        preset_l.watched([sys.executable, "-c", "raise SystemExit('no world today')"])


def test_watched_measures_the_memory_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    preset_l = bench(monkeypatch, "bench_masim_l")
    measured = preset_l.watched([sys.executable, "-c", "import time; data = bytearray(64 << 20); time.sleep(1.5)"])
    assert measured.single_mib > 64
