"""Tests a sweep over a named configuration whose readers each need the whole GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from memarena.cli.run_config import run_settings
from memarena.cli.run_flags import RunFlags
from memarena.sweep.configured import sweep_of

from tests.e2e.harnessing import EXAMPLE, here, memarena
from tests.support.gpu_servers import install

from .sweeping import state

FLAGS = ("--dataset", EXAMPLE, "--backend", "bm25,vanilla", "--seeds", "s1", "--limit", "2")


def test_readers_of_a_named_configuration_run_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripted GPU holds one server at a time; cells of one reader share it and run in parallel."""
    monkeypatch.setenv("PYTHONPATH", install(tmp_path / "packages"))
    monkeypatch.setenv("FAKE_SGLANG", json.dumps({"gpu": str(tmp_path / "gpu")}))
    out = tmp_path / "out"
    arguments = ("sweep", "retrieval-depth", *FLAGS, "--reader", "sglang:a,sglang:b", "--out", out, "--cores", "2")
    result = memarena(*arguments)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "gpu.loads").read_text().split() == ["a", "b"]
    planned = state(out).planned
    assert planned is not None
    assert {(c.memory, c.reader, c.seed, c.timed) for c in planned.cells} == {
        (memory, f"sglang:{reader}", "s1", False) for memory in ("bm25", "vanilla") for reader in "ab"
    }
    (run,) = json.loads(here("report", out, "--format", "json").stdout)["runs"]
    assert len(run["rows"]) == 4


def test_a_plan_of_a_named_configuration_has_its_memories_seeds_and_settings() -> None:
    flags = ("--embedder", "embedded", "--option", "headers.k=7", "--reader", "extractive", "--dataset", EXAMPLE)
    result = here("sweep", "provenance-headers", *flags, "--plan", "--timed")
    assert result.returncode == 0, result.stderr
    names = [line.split("\t")[0] for line in result.stdout.splitlines() if "\t" in line]
    parts = [tuple(name.split("_")[1:4]) for name in names]
    assert parts == [(m, "extractive", s) for m in ("bm25", "headers") for s in ("s2", "s3", "s4")]
    assert "6 cells, 6 of them timed" in result.stdout
    config, _ = run_settings(RunFlags(name="provenance-headers", settings=typed_flags(k="7")))
    assert config is not None
    plain, headers = sweep_of(config, "").memories
    assert (plain.options, plain.settings, plain.run) == ({}, {}, {})
    assert headers.options == {"k": "7", "retrieval": "dense", "headers": "on"}
    assert (headers.backend, headers.settings) == ("bm25", {"BM25_VECTORS": "on"})
    assert sweep_of(config, "").run["prompt_style"] == "json_context"


def typed_flags(k: str) -> dict[str, object]:
    return {
        "dataset": EXAMPLE, "reader": "extractive", "embedder": "embedded", "option": [f"headers.k={k}"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no-such", *FLAGS, "--reader", "extractive"), "no-such: no configuration of this name, and no file"),
        (("retrieval-depth", *FLAGS), "--reader: missing"),
        (("grid.toml", *FLAGS), "--backend: goes with a named configuration; grid.toml is a file"),
        (("grid.toml", "--timed"), "--timed: goes with a named configuration"),
    ],
)
def test_bad_input_gives_one_line(arguments: tuple[str | Path, ...], message: str) -> None:
    result = here("sweep", *arguments, "--plan")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
