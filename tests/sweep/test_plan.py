"""Tests the file of a sweep: its cells and their names, and one-line errors."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from memarena.execution.planning.parsing import parse_config
from memarena.sweep.cells import cells_of, plan_sha256
from memarena.sweep.errors import SweepError
from memarena.sweep.plan import read_sweep

from tests.e2e.harnessing import EXAMPLE, here

FILE = """
title = "a grid"
seeds = ["s1", "s2"]

[[worlds]]
preset = "tiny"
seeds = [7, 8]
[[worlds]]
dataset = "example"

[[memories]]
name = "bm25"
[[memories]]
name = "short"
backend = "vanilla"
options = {budget_tokens = "512"}

[[readers]]
spec = "extractive"
[[readers]]
spec = "http://127.0.0.1:30000/v1"
model = "Qwen/Qwen3-0.6B"
needs = {cpus = 2, gpus = 1, labels = {gpu = "h100"}}

[run]
protocol = "end_of_horizon"
limit = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "example")
    path = tmp_path / "sweep.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_there_is_a_cell_for_each_world_memory_reader_and_seed(file: Path) -> None:
    cells = cells_of(read_sweep(file))
    assert len(cells) == len({cell.name for cell in cells}) == 3 * 2 * 2 * 2
    assert [re.sub(r"_\w{10}$", "", cell.name) for cell in cells[:5]] == [
        "tiny-7_bm25_extractive_s1",
        "tiny-7_bm25_extractive_s2",
        "tiny-7_bm25_Qwen3-0.6B_s1",
        "tiny-7_bm25_Qwen3-0.6B_s2",
        "tiny-7_short_extractive_s1",
    ]
    for cell in cells:  # each is a valid configuration of a run
        config = parse_config({**cell.config, "dataset": "."}, cell.name)
        assert len(config.backends) == len(config.readers) == len(config.seeds) == 1
        assert (config.protocol, config.limit, config.timed) == ("end_of_horizon", 5, False)
    short = next(cell for cell in cells if cell.memory == "short" and cell.reader != "extractive")
    assert short.config["backends"] == ["short=vanilla"]
    assert short.config["options"] == {"short": {"budget_tokens": "512"}}
    assert (short.needs.cpus, short.needs.gpus, short.needs.labels) == (2, 1, {"gpu": "h100"})


def test_the_same_file_gives_the_same_cells_in_any_folder(file: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.copytree(tmp_path / "example", moved / "example")
    shutil.copy(file, moved / "other.toml")
    ours, theirs = cells_of(read_sweep(file)), cells_of(read_sweep(moved / "other.toml"))
    assert [cell.name for cell in ours] == [cell.name for cell in theirs]
    assert plan_sha256(ours) == plan_sha256(theirs)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("limit = 5", "limit = 6", 0),
        ("seeds = [7, 8]", "seeds = [7, 9]", 16),
        ('budget_tokens = "512"', 'budget_tokens = "256"', 12),
        ('title = "a grid"', 'title = "another"', 24),
        ('title = "a grid"', "timed = true", 0),
        ("cpus = 2", "cpus = 4", 24),
    ],
)
def test_a_cells_name_depends_on_exactly_its_inputs(file: Path, before: str, after: str, same: int) -> None:
    names = {cell.name for cell in cells_of(read_sweep(file))}
    file.write_text(FILE.replace(before, after), encoding="utf-8")
    assert len(names & {cell.name for cell in cells_of(read_sweep(file))}) == same


def test_a_data_set_that_changes_is_another_world(file: Path, tmp_path: Path) -> None:
    names = {cell.name for cell in cells_of(read_sweep(file)) if cell.world.dataset is not None}
    corpus = tmp_path / "example" / "corpus_sessions.jsonl"
    rows = corpus.read_text(encoding="utf-8").splitlines()
    first = json.loads(rows[0])
    first["turns"][0]["text"] += " Indeed."
    corpus.write_text("\n".join([json.dumps(first), *rows[1:]]) + "\n", encoding="utf-8")
    assert names.isdisjoint(cell.name for cell in cells_of(read_sweep(file)))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("limit = 5", "limit = 0", "run: limit: expected 1 or more"),
        ("limit = 5", "limits = 5", "run: limits: there is no such setting"),
        ("limit = 5", 'dataset = "x"', "run.dataset: is no field here"),
        ('preset = "tiny"', 'preset = "huge"', "worlds.0.preset: expected one of tiny, s, m, l, year, got 'huge'"),
        ("seeds = [7, 8]", "", "worlds.0: seeds: expected at least one with preset"),
        ('dataset = "example"', 'dataset = "nowhere"', "worlds: "),
        ('name = "short"', 'name = "bm25"', "memories: bm25 is named twice"),
        ('name = "short"', 'name = "a b"', "memories.1.name: "),
        ("seeds = [7, 8]", "seeds = [7, 7]", "two cells are the same: tiny-7_"),
        ("gpus = 1", "gpu = 1", "readers.1.needs.gpu: there is no such setting"),
        ("[run]", "[run", "not valid TOML: "),
        ("seeds = [7, 8]", "seeds = [-1]", "worlds.0.seeds.0: expected 0 or more, got '-1'"),
        ("seeds = [7, 8]", "seeds = 7", "worlds.0.seeds: expected a list"),
        ('dataset = "example"', 'dataset = ""', "worlds.1.dataset: expected the path of a folder"),
        ('name = "bm25"', 'name = "bm26"', "memories.0.name: bm26: no backend of this name"),
        ('backend = "vanilla"', 'backend = "vanila"', "memories.1.backend: vanila: no backend of this name"),
        ("options = {", 'settings = {A_TOKEN = "x"}\noptions = {', "memories: settings: short.A_TOKEN: "),
        ("limit = 5", "max_items = 4294967297", "run: max_items: expected at most"),
    ],
)
def test_an_invalid_file_gives_one_line_with_the_field(file: Path, before: str, after: str, message: str) -> None:
    file.write_text(FILE.replace(before, after, 1), encoding="utf-8")
    result = here("sweep", file, "--plan")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"error: {file}: ")
    assert message in result.stderr


def test_a_missing_file_and_flags_without_effect_are_named(file: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((tmp_path / "none.toml", "--plan"), "none.toml: cannot be read: No such file or directory"),
        ((file,), "--out: expected a folder"),
        ((file, "--out", tmp_path / "o", "--simulate", "2"), "--simulate: goes with --plan"),
        ((file, "--out", tmp_path / "o", "--executor", "slurm"), "--executor slurm: expected one of local"),
        ((file, "--plan", "--times", tmp_path / "o"), f"--times {tmp_path / 'o'}: no such folder"),
        ((file, "--plan", "--times", tmp_path), f"--times {tmp_path}: holds no sweep"),
        ((file, "--plan", "--simulate", "2"), "--simulate: needs a time of every cell"),
    ):
        result = here("sweep", *arguments)
        assert result.returncode == 2
        assert message in result.stderr
    assert not (tmp_path / "o").exists()
    with pytest.raises(SweepError):
        read_sweep(tmp_path / "none.toml")
