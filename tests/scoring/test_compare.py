"""Tests comparisons: paired by question, with intervals over egos, and refused where two runs are not comparable.

A gap between two memories is a finding only if it exceeds what other egos (people) could have shown by chance.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memarena.cli.main import app
from memarena.evaluation import evaluate, load_facts
from memarena.log.records import AnyRecord, Question
from memarena.report.tables.question_changes import questions_csv
from memarena.scoring.compare import across_worlds, choose, compare
from memarena.scoring.errors import ScoringError
from memarena.scoring.question_changes import compare_questions
from memarena.scoring.run import ScoredRun
from memarena_dataset.model import Family
from typer.testing import CliRunner

from ..support import golden_run
from ..support.logs import make_asked, make_cell, make_question, make_reader, make_run, text_gold, write_log
from ..support.scoring import score_records

POOL = [
    make_question(f"q_{e:02d}_{n}", Family.METADATA, text_gold("Porto"), "Where?", ego=f"e{e:02d}")
    for e in range(10)
    for n in range(6)
]
A, B = "bm25@small", "oracle@small"
CELLS = [make_cell(b, seed=s) for b in ("bm25", "oracle") for s in ("s2", "s3")]


def records(
    better: float = 0.2,
    *,
    salt: int = 0,
    sha: str = "ab" * 32,
    run_id: str = "run-test",
    pool: Sequence[Question] = POOL,
) -> list[AnyRecord]:
    """Records of a run in which oracle is right where bm25 is, and in some more questions.

    ``better``: by how much oracle's expected share of right answers is higher. Difficult questions are difficult for
    both.
    """
    rng = np.random.default_rng(salt)
    hard = rng.random(len(pool))
    attempts: list[AnyRecord] = []
    for cell in CELLS:
        reach = 0.5 + (better if cell.backend == "oracle" else 0)
        attempts += [
            make_asked(cell, q, "Porto" if h + rng.normal(0, 0.02) < reach else "Lisbon")
            for q, h in zip(pool, hard, strict=True)
        ]
    run = make_run(CELLS, pool, [], attempts)
    assert run[0].kind == "run_started"
    dataset = run[0].manifest.dataset.model_copy(update={"sha256": sha, "name": f"world {sha[:4]}"})
    manifest = run[0].manifest.model_copy(update={"dataset": dataset})
    return [run[0].model_copy(update={"manifest": manifest, "run_id": run_id}), *run[1:]]


def scored(better: float = 0.2, **more: object) -> ScoredRun:
    return score_records(records(better, **more))  # type: ignore[arg-type]


def test_a_difference_equals_that_of_the_figures_and_has_an_interval_over_egos() -> None:
    run = scored()
    comparison = compare(choose(run, B), choose(run, A))
    (d2,) = [d for d in comparison.differences if d.metric == "D2"]
    rows = {r.label: r.metrics["D2"].value for r in run.scores.rows}
    assert d2.a == pytest.approx(rows[B])
    assert d2.b == pytest.approx(rows[A])
    assert d2.difference is not None
    assert d2.difference == pytest.approx((rows[B] or 0) - (rows[A] or 0))
    assert d2.interval is not None
    assert 0 < d2.interval.low < d2.difference < d2.interval.high
    assert d2.p_diagnostic is not None
    assert d2.p_diagnostic < 0.01
    assert d2.smallest_difference is not None
    assert d2.smallest_difference < d2.difference
    assert (d2.questions, d2.only_b, comparison.questions, comparison.left_out) == (60, 0, 60, 0)
    assert d2.only_a > 5


def test_a_paired_interval_is_narrower_than_an_unpaired_one() -> None:
    run = scored()
    (d2,) = [d for d in compare(choose(run, B), choose(run, A)).differences if d.metric == "D2"]
    unpaired_se = sum(r.intervals["D2"].se ** 2 for r in run.scores.rows) ** 0.5
    assert d2.interval is not None
    assert d2.interval.se < 0.8 * unpaired_se


def test_a_row_does_not_differ_from_itself() -> None:
    run = scored()
    for difference in compare(choose(run, A), choose(run, A)).differences:
        assert difference.difference == 0.0
        assert difference.p_diagnostic in (None, 1.0)


def test_swapping_the_sides_reverses_the_sign() -> None:
    run = scored()
    forward = {d.metric: d for d in compare(choose(run, A), choose(run, B)).differences}
    for back in compare(choose(run, B), choose(run, A)).differences:
        forth = forward[back.metric]
        assert back.difference == pytest.approx(-(forth.difference or 0))
        assert (back.only_a, back.only_b) == (forth.only_b, forth.only_a)
        if back.interval is not None and forth.interval is not None:
            assert back.interval.low == pytest.approx(-forth.interval.high)


@pytest.mark.parametrize(("status", "cause"), [("infra_failed", "reader"), ("reader_not_applicable", "no_context")])
def test_questions_that_say_nothing_about_a_memory_leave_the_pairing_on_both_sides(status: str, cause: str) -> None:
    run_records = records()
    broken = [
        r.model_copy(update={"status": status, "cause": cause, "answer": None})
        if r.kind == "asked" and r.cell_id == "bm25@small/s2" and r.instance_id == "q_00_0"
        else r
        for r in run_records
    ]
    run = score_records(broken)
    comparison = compare(choose(run, A), choose(run, B))
    assert (comparison.questions, comparison.left_out) == (59, 1)


def test_a_cell_is_one_seed_and_a_row_its_headline_seeds() -> None:
    run = scored()
    assert choose(run, "bm25@small/s3").side.seeds == ("s3",)
    assert choose(run, "bm25@small").side.seeds == ("s2", "s3")
    assert choose(run, "bm25").side == choose(run, "bm25@small").side
    twice = run.scores.model_copy(update={"rows": (*run.scores.rows, run.scores.rows[0])})
    with pytest.raises(ScoringError, match="several rows are of bm25"):
        choose(replace(run, scores=twice), "bm25")
    with pytest.raises(ScoringError, match="there are: bm25@small, oracle@small"):
        choose(run, "nobody@small")
    with pytest.raises(ScoringError, match="has 2 rows"):
        choose(run, None)


def test_runs_over_different_data_have_no_differences() -> None:
    comparison = compare(choose(scored(), A), choose(scored(sha="cd" * 32), A))
    assert comparison.differences == ()
    assert "data sets differ" in comparison.incomparable[0]


# ------------------------------------------------------------------ worlds


def worlds(count: int, better: float = 0.2) -> list[ScoredRun]:
    return [scored(better, salt=n, sha=f"{n:02x}" * 32, run_id=f"run-{n}") for n in range(count)]


def test_eight_worlds_have_an_interval_and_seven_are_too_few() -> None:
    runs = worlds(8)
    eight = across_worlds([(choose(r, B), choose(r, A)) for r in runs])
    (d2,) = [d for d in eight.differences if d.metric == "D2"]
    assert d2.interval is not None
    assert d2.mean == pytest.approx(np.mean([w.difference for w in d2.worlds]))
    assert (d2.interval.method, d2.interval.clusters) == ("t_worlds", 8)
    assert d2.interval.low < 0.2 < d2.interval.high
    assert not any("worlds" in line for line in eight.cautions)
    seven = across_worlds([(choose(r, B), choose(r, A)) for r in runs[:7]])
    assert all(d.interval is None and d.smallest_difference is None for d in seven.differences)
    assert any("7 worlds" in line for line in seven.cautions)


def test_the_same_world_twice_is_refused() -> None:
    run = scored()
    comparison = across_worlds([(choose(run, A), choose(run, B)), (choose(run, A), choose(run, B))])
    assert comparison.differences == ()
    assert "more than once" in comparison.incomparable[0]


# ------------------------------------------------------------------ the command


def invoke(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("runs") / "one", records())


def test_the_command_prints_a_table_markdown_or_json(run_dir: Path) -> None:
    table = invoke(run_dir, "--cell", B, "--cell", A)
    assert "95%" in table
    assert "diagnostic" in table
    assert "| D2 |" in invoke(run_dir, "--cell", B, "--cell", A, "--format", "md")
    comparison = json.loads(invoke(run_dir, "--cell", B, "--cell", A, "--format", "json"))["comparisons"][0]
    (d2,) = [d for d in comparison["differences"] if d["metric"] == "D2"]
    assert d2["interval"]["low"] > 0
    assert invoke(run_dir, "--cell", B, "--cell", A) == table


def test_two_runs_are_compared_row_by_row(run_dir: Path, tmp_path: Path) -> None:
    other = write_log(tmp_path / "other", records(0.4, run_id="run-other"))
    comparisons = json.loads(invoke(run_dir, other, "--format", "json"))["comparisons"]
    assert [(c["a"]["label"], c["b"]["run_id"]) for c in comparisons] == [(A, "run-other"), (B, "run-other")]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"dataset": {"sha256": "cd" * 32}}, "data sets differ"),
        ({"protocol": "end_of_horizon"}, "protocols differ"),
        ({"d6_rules": "inferred"}, "rules of D6 in the reader's prompt differ: stated and inferred"),
        ({"readers": (make_reader().model_copy(update={"model": "other"}),)}, "reader small was another model"),
    ],
)
def test_incomparable_runs_are_refused_in_one_line(
    run_dir: Path, tmp_path: Path, change: dict[str, object], line: str
) -> None:
    run_records = records()
    assert run_records[0].kind == "run_started"
    manifest = run_records[0].manifest
    if isinstance(sha := change.get("dataset"), dict):
        change = {"dataset": manifest.dataset.model_copy(update=sha)}
    if "d6_rules" in change:
        cells = [cell.model_copy(update={"reading": cell.reading.model_copy(update=change)}) for cell in manifest.cells]
        change = {"cells": tuple(cells)}
    other_records = [
        run_records[0].model_copy(update={"manifest": manifest.model_copy(update=change)}),
        *run_records[1:],
    ]
    with pytest.raises(ScoringError, match=line) as raised:
        invoke(run_dir, write_log(tmp_path / "other", other_records))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--cell", A, "--cell", "nobody"], "no such row or cell"),
        (["--cell", A], "of a single run expected two --cell; there are: bm25@small, oracle@small"),
        (["--cell", A, "--cell", B, "--format", "html"], "expected one of table, md, json"),
        (["--cell", A, "--cell", B, "--cell", A], "at most two"),
    ],
)
def test_bad_input_gives_one_line(run_dir: Path, arguments: list[str], line: str) -> None:
    with pytest.raises(ScoringError, match=line):
        invoke(run_dir, *arguments)


# ------------------------------------------------------------------ two data sets

OTHERS = [
    make_question(f"f_{e:02d}_{n}", Family.METADATA, text_gold("Porto"), "Where?", ego=f"f{e:02d}")
    for e in range(10)
    for n in range(6)
]
"""Questions of a second data set, with other egos."""


def test_a_memory_on_two_data_sets_is_compared_with_independent_draws(run_dir: Path, tmp_path: Path) -> None:
    fresh = write_log(tmp_path / "fresh", records(0.1, salt=1, sha="cd" * 32, run_id="run-fresh", pool=OTHERS))
    compared = json.loads(invoke(run_dir, fresh, "--unpaired", "--format", "json"))["comparisons"]
    assert [(c["a"]["label"], c["datasets"], c["questions"]) for c in compared] == [
        (label, ["world abab", "world cdcd"], [60, 60]) for label in (A, B)
    ]
    rows = [{r.label: r for r in evaluate(load_facts(path)).scores.rows}[B] for path in (run_dir, fresh)]
    (d2,) = [d for d in compared[1]["differences"] if d["metric"] == "D2"]
    figures = [row.metrics["D2"].value or 0 for row in rows]
    assert d2["difference"] == pytest.approx(figures[0] - figures[1], abs=1e-6)
    unpaired_se = sum(row.intervals["D2"].se ** 2 for row in rows) ** 0.5
    assert d2["interval"]["se"] == pytest.approx(unpaired_se, rel=0.05)
    table = invoke(run_dir, fresh, "--unpaired")
    assert "unpaired" in table
    assert "60 questions of world cdcd" in table


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--unpaired"], "expected two runs, got 1"),
        (["--unpaired", "--questions"], "leave out --questions"),
        (["--unpaired", "--format", "html"], "expected one of table, md, json"),
    ],
)
def test_bad_input_of_two_data_sets_gives_one_line(run_dir: Path, arguments: list[str], line: str) -> None:
    with pytest.raises(ScoringError, match=line):
        invoke(run_dir, *arguments)


def test_runs_of_one_data_set_are_not_compared_unpaired(run_dir: Path, tmp_path: Path) -> None:
    other = write_log(tmp_path / "other", records(0.4, run_id="run-other"))
    with pytest.raises(ScoringError, match="both runs are of the data set world abab, whose questions are paired"):
        invoke(run_dir, other, "--unpaired")


# ------------------------------------------------------------------ question by question

FEW = [make_question(f"q_{n}", Family.METADATA, text_gold("Porto"), f"Where {n}?", ego=f"e{n}") for n in range(6)]
WHERE = dict(
    zip((q.instance.instance_id for q in FEW), ("same", "gained", "lost", "other", "lost", "unpaired"), strict=True)
)


def few_records(run_id: str, answers: Sequence[str], tokens: int) -> list[AnyRecord]:
    """Return records of one cell.

    The answer "fails" means a failure of the memory, "lost" an infrastructure failure, and "" no attempt.
    """
    cell = make_cell("bm25")
    reading = cell.reading.model_copy(update={"max_context_tokens": tokens})
    cell = cell.model_copy(update={"reading": reading})
    attempts = []
    for question, answer in zip(FEW, answers, strict=True):
        status = {"fails": "backend_failed", "lost": "infra_failed"}.get(answer)
        if answer:
            fields: dict[str, Any] = {"status": status, "cause": "gone"} if status else {}
            attempts.append(make_asked(cell, question, answer, search_ms=2.0, **fields))
    run = make_run([cell], FEW, [], attempts)
    assert run[0].kind == "run_started"
    config = json.dumps({"limit": 6, "backends": {"bm25": {"k": tokens}}})
    manifest = run[0].manifest.model_copy(update={"config_json": config})
    return [run[0].model_copy(update={"manifest": manifest, "run_id": run_id}), *run[1:]]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    before = few_records("run-a", ["Porto", "Lisbon", "Porto", "Lisbon", "Porto", "Porto"], 512)
    after = few_records("run-b", ["Porto", "Porto", "Lisbon", "fails", "fails", "lost"], 1024)
    return write_log(folder / "a", before), write_log(folder / "b", after)


def test_two_runs_are_compared_question_by_question(two_runs: tuple[Path, Path]) -> None:
    [comparison] = json.loads(invoke(*two_runs, "--questions", "--format", "json"))["comparisons"]
    assert {q["instance_id"]: q["change"] for q in comparison["questions"]} == WHERE
    assert comparison["counts"] == {"lost": 2, "gained": 1, "other": 1, "unpaired": 1, "same": 1}
    [failed_question] = [q for q in comparison["questions"] if q["instance_id"] == "q_2"]
    assert (failed_question["question"], failed_question["a"], failed_question["b"]) == (
        "Where 2?",
        {"outcomes": ["correct"], "answers": ["Porto"]},
        {"outcomes": ["wrong"], "answers": ["Lisbon"]},
    )
    [family] = comparison["families"]
    assert (family["family"], family["questions"]) == ("d6_metadata", 5)
    assert family["figures"]["right"] == {"a": 0.6, "b": 0.4, "change": -0.2}
    assert family["figures"]["search_ms"] == {"a": 2.0, "b": 2.0, "change": 0.0}
    assert family["figures"]["tokens"] == {"a": None, "b": None, "change": None}
    settings = {setting["key"]: (setting["a"], setting["b"]) for setting in comparison["settings"]}
    assert settings == {
        "cell.reading.max_context_tokens": ("512", "1024"),
        "run.backends.bm25.k": ("512", "1024"),
    }


def test_csv_of_questions_holds_no_formula_and_no_escape(two_runs: tuple[Path, Path]) -> None:
    a, b = (load_facts(path) for path in two_runs)
    comparison = compare_questions(choose(evaluate(a), None), choose(evaluate(b), None), (a, b))
    first, *others = comparison.questions
    hostile = first.model_copy(update={"question": '=HYPERLINK("http://h","x")', "ego": "e\x1b[2J"})
    text = questions_csv([comparison.model_copy(update={"questions": (hostile, *others)})])
    assert "\"'=HYPERLINK(" in text
    assert "\x1b" not in text


def test_answerable_by_family_equals_the_reports_figure(tmp_path: Path) -> None:
    run = evaluate(load_facts(shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run")))
    facts = load_facts(tmp_path / "run")
    a, b = (choose(run, name) for name in ("hazy@small", "oracle@small"))
    comparison = compare_questions(a, b, (facts, facts))
    for side, row in (("a", a.row), ("b", b.row)):
        reported = {part.family: part.score.value for part in row.answerable if part.score.value is not None}
        compared = {family.family: getattr(family.figures["answerable"], side) for family in comparison.families}
        assert reported
        assert {name: compared[name] for name in reported if name in compared} == reported, side


def test_questions_as_csv_table_and_markdown_and_only_differing_ones(two_runs: tuple[Path, Path]) -> None:
    rows = list(csv.DictReader(io.StringIO(invoke(*two_runs, "--questions", "--differs", "--format", "csv"))))
    assert {row["instance_id"]: row["change"] for row in rows} == {
        name: change for name, change in WHERE.items() if change not in ("same", "unpaired")
    }
    assert [(r["a_outcomes"], r["b_outcomes"], r["b_answers"]) for r in rows if r["instance_id"] == "q_1"] == [
        ("wrong", "correct", "Porto")
    ]
    table = " ".join(invoke(*two_runs, "--questions").split())
    for piece in (
        "60.0 → 40.0 (-20.0)",
        "2 lost, 1 gained, 1 other, 1 unpaired, 1 same",
        "A right “Porto” B wrong “Lisbon”",
    ):
        assert piece in table, piece
    assert "| run.backends.bm25.k | 512 | 1024 |" in invoke(*two_runs, "--questions", "--format", "md")
    page = invoke(*two_runs, "--questions", "--differs", "--format", "html")
    assert "<script" not in page
    cells = [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)]
    assert {row[-1]: row[0] for row in cells if row[-1].startswith("q_")} == {
        r["instance_id"]: r["change"] for r in rows
    }
    assert ["wrong", "right", "Porto"] in [[row[3], row[5], row[6]] for row in cells if row[-1] == "q_1"]


def test_a_question_missing_on_one_side_is_in_no_figure(tmp_path: Path, two_runs: tuple[Path, Path]) -> None:
    partly = write_log(tmp_path / "c", few_records("run-c", ["Porto", "Porto", "", "", "", ""], 512))
    [comparison] = json.loads(invoke(two_runs[0], partly, "--questions", "--format", "json"))["comparisons"]
    assert comparison["counts"] == {"lost": 0, "gained": 1, "other": 0, "unpaired": 4, "same": 1}
    assert comparison["families"][0]["questions"] == 2
    assert [q["b"]["outcomes"] for q in comparison["questions"] if q["change"] == "unpaired"] == [[]] * 4
    assert comparison["settings"] == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["A", "B", "--differs"], "--differs: goes with --questions"),
        (["A", "B", "--format", "csv"], "--format csv: expected one of table, md, json"),
        (
            ["A", "B", "--questions", "--format", "latex"],
            "--format latex: with --questions expected one of table, md, json, csv, html",
        ),
        (["A", "--questions"], "of a single run expected two --cell; there are: bm25@small"),
        (["A", "B", "--questions", "--cell", "x"], "--cell x: no such row or cell in run run-a"),
        (["A", "C", "--questions"], "not comparable: data sets differ"),
    ],
)
def test_runs_that_cannot_be_compared_by_question_are_refused(
    two_runs: tuple[Path, Path], run_dir: Path, arguments: list[str], line: str
) -> None:
    folders = {"A": str(two_runs[0]), "B": str(two_runs[1]), "C": ""}
    if "C" in arguments:
        run_records = few_records("run-d", ["Porto"] * 6, 512)
        assert run_records[0].kind == "run_started"
        dataset = run_records[0].manifest.dataset.model_copy(update={"sha256": "ef" * 32})
        manifest = run_records[0].manifest.model_copy(update={"dataset": dataset})
        start = run_records[0].model_copy(update={"manifest": manifest})
        folders["C"] = str(write_log(run_dir.parent / "other-world", [start, *run_records[1:]]))
    result = CliRunner().invoke(app, ["compare", *(folders.get(argument, argument) for argument in arguments)])
    assert isinstance(result.exception, ScoringError)
    assert line in str(result.exception)
