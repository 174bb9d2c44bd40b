"""Tests ``masim bars``: the table of all measures, targets missed by name, one line for unmeasurable folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from memarena_dataset_quality.bar_table import as_lines, bounded
from memarena_dataset_quality.command import bars, find_locomo, world_folders
from memarena_dataset_quality.errors import QualityError

SHARED = Path(os.environ.get("MEMARENA_SHARED", Path(__file__).parents[3] / "shared"))
LOCOMO = SHARED / "data" / "locomo" / "locomo5.json"


@pytest.fixture(scope="module")
def folders(small_world: Path, other_small_worlds: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The small world to measure, and two in one folder to learn from."""
    several = tmp_path_factory.mktemp("train")
    for number, folder in enumerate(other_small_worlds):
        shutil.copytree(folder, several / f"world_{number:02d}")
    return [small_world, several]


def nothing(line: str) -> None:
    """Ignore a line of progress."""


def test_the_table_is_whole(folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every property of the design has a row with figure, bar and verdict; what was not measured says why."""
    monkeypatch.setenv("MEMARENA_SHARED", str(tmp_path))
    out = tmp_path / "bars.json"
    lines, is_met = bars(folders[:1], folders[1:], locomo=None, llm=False, json_file=out, say=nothing)
    table = json.loads(out.read_text(encoding="utf-8"))
    by_name = {row["name"]: row for row in table["bars"]}
    for name in (
        "tokens per turn",
        "tokens per session",
        "AUC of asked facts",
        "evidence in its fullest tenth of a session",
        "median length, evidence to other turns",
        "turns with planned statements against others, AUC",
        "evidence against other turns, AUC",
        "digits in other turns to those that state",
        "query-blind recall at 10, times random",
        "D1 by the option mentioned last",
        "D1 by the option mentioned most by or about whom",
        "by the kind of asker alone, J",
        "D3 dates told by the week",
        "shortcut attack minus extractive reader, points",
        "value questions solved",
        "guesser above best constant, upper 95%, points",
        "  d4_permission",
        "errors of validate, 1 worlds",
        "sessions with somebody asleep",
        "sessions outside opening hours",
    ):
        assert by_name[name]["figure"] is not None, name
        assert by_name[name]["verdict"] in ("pass", "MISSED"), name
    for name in (
        "masked 8-gram coverage",
        "6-gram coverage",
        "turns above 12 words that occur twice, worst world",
        "bm25 recall at 10, d7_qa",
    ):
        assert by_name[name]["verdict"] == "reported"
    assert by_name["above bm25 on a world of the pack it learned, points"]["figure"] > 0
    assert by_name["above bm25 on another pack, points"]["note"] == "the worlds are of the pack that was learned"
    assert by_name["true next turn preferred to a random one"]["verdict"] == "not measured"
    assert any("needs --llm" in line for line in lines)
    assert all("not at hand" in line for line in lines if line.startswith("  "))
    assert len(table["train"]) == 2
    missed = [row for row in table["bars"] if row["verdict"] == "MISSED"]
    assert is_met is (not missed)
    assert sum(line.startswith("MISSED: ") for line in lines) == len(missed)


@pytest.mark.skipif(not LOCOMO.exists(), reason=f"{LOCOMO} is not there")
def test_locomo_stands_beside(tiny_world: Path) -> None:
    """Measured from its file by the same measures: within what the design gives for it."""
    lines, _ = bars([tiny_world], [], locomo=LOCOMO, llm=False, json_file=None, say=nothing)
    cells = {line[:54].strip(): line[54:].split() for line in lines if line.startswith("  ")}
    assert 0.05 < float(cells["masked 8-gram coverage"][1]) < 0.08
    assert 0.045 < float(cells["6-gram coverage"][1]) < 0.065


def test_a_broken_world_is_caught(tiny_world: Path, tmp_path: Path) -> None:
    """An instance asked twice is an error of validate, and the row is missed."""
    broken = tmp_path / "broken"
    shutil.copytree(tiny_world, broken)
    file = broken / "eval_instances" / "d7_qa.jsonl"
    first = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
    first["instance_id"] += "_again"
    with file.open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(first) + "\n")
    lines, is_met = bars([broken], [], locomo=None, llm=False, json_file=None, say=nothing)
    assert not is_met
    assert any(line.startswith("MISSED: worlds: errors of validate") for line in lines)


def test_worlds_to_learn_from_are_never_reported(folders: list[Path]) -> None:
    """The same folder on both sides is refused."""
    with pytest.raises(QualityError, match="--train"):
        bars(folders[:1], folders[:1], locomo=None, llm=False, json_file=None, say=nothing)


def test_a_folder_of_worlds_stands_for_them(folders: list[Path], tmp_path: Path) -> None:
    """As ``masim generate --worlds`` writes them; a folder without any is refused."""
    assert [folder.name for folder in world_folders(folders[1:])] == ["world_00", "world_01"]
    with pytest.raises(QualityError, match="no data set"):
        world_folders([tmp_path])


def test_a_missing_locomo_file_is_refused_and_none_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named and not there is a mistake; not named and not there is no figure."""
    monkeypatch.setenv("MEMARENA_SHARED", str(tmp_path))
    assert find_locomo(None) is None
    with pytest.raises(QualityError, match="--locomo"):
        find_locomo(tmp_path / "none.json")


def test_a_table_file_that_cannot_be_written_is_refused_first(tiny_world: Path, tmp_path: Path) -> None:
    """Before minutes of measuring, and nothing is left behind by the look."""
    messages: list[str] = []
    for wrong in (tmp_path, tmp_path / "none" / "bars.json", Path("/proc/bars.json")):
        with pytest.raises(QualityError, match=f"--json {wrong}: "):
            bars([tiny_world], [], locomo=None, llm=False, json_file=wrong, say=messages.append)
    with pytest.raises(QualityError, match="no data set"):
        bars([tmp_path], [], locomo=None, llm=False, json_file=tmp_path / "bars.json", say=messages.append)
    assert messages == []
    assert list(tmp_path.iterdir()) == []


def test_no_figure_is_never_a_pass() -> None:
    """NaN and nothing are not measured, and are counted apart."""
    rows = [
        bounded("g", "a", float("nan"), "at most 1", 0, 1),
        bounded("g", "b", None, "at most 1", 0, 1),
        bounded("g", "c", 0.5, "at most 1", 0, 1, locomo=0.25),
        bounded("g", "d", 1.5, "at most 1", 0, 1),
    ]
    assert [row.verdict for row in rows] == ["not measured", "not measured", "pass", "MISSED"]
    lines = as_lines(rows, with_locomo=True)
    assert "1 of 4 bars pass, 1 missed, 2 not measured" in lines
    assert lines[-1] == "MISSED: g: d: 1.500; bar: at most 1"
    assert "0.250" in lines[4]


def test_a_miss_ends_with_one_unless_lenient(tiny_world: Path) -> None:
    """If a bar is missed, which a tiny world cannot help; bad input is one line and exit code 2."""
    command = [sys.executable, "-m", "memarena_masim", "bars"]
    strict = subprocess.run([*command, str(tiny_world)], capture_output=True, text=True, check=False)
    assert "value questions solved" in strict.stdout, strict.stderr
    assert "\nMISSED: " in strict.stdout
    assert strict.returncode == 1
    lenient = subprocess.run([*command, str(tiny_world), "--lenient"], capture_output=True, check=False)
    assert lenient.returncode == 0
    wrong = subprocess.run([*command, str(tiny_world / "none")], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
