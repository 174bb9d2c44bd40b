"""Tests three tables of the paper, each interrupted twice: the command resumes, and figures equal the report's."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from ..e2e.harnessing import EXAMPLE, here, memarena
from ..sweep.sweeping import asked_so_far, sent, state, struck

READERS = '[[readers]]\nname = "Qwen3-8B"\nspec = "extractive"\n'


@pytest.mark.parametrize(
    ("table", "configuration", "missing"),
    [
        ("p1a-budget", "omniscient", ""),
        ("policy-header", "policy-header", ""),
        ("reranker-baseline", "cross-encoder", "an address of the reranker ms-marco-MiniLM-L-12-v2 (for rerank)"),
    ],
)
def test_a_table_is_made_whole_although_its_command_was_killed_and_stopped(
    table: str, configuration: str, missing: str, tmp_path: Path
) -> None:
    file, out = tmp_path / "readers.toml", tmp_path / "out"
    file.write_text(READERS, encoding="utf-8")
    folder = out / "sweeps" / configuration / "Qwen3-8B"
    arguments = (table, "--readers", file, "--dataset", EXAMPLE, "--limit", "6", "--out", out)
    code, survivors = struck(arguments, lambda: asked_so_far(folder / "scratch") >= 1, signal.SIGKILL, "reproduce")
    assert (code, survivors) == (-signal.SIGKILL, [])
    again = len(sent(folder))
    code, survivors = struck(arguments, lambda: len(sent(folder)) > again, signal.SIGTERM, "reproduce")
    assert (code, survivors) == (130, [])
    before = state(folder).sealed
    result = memarena("reproduce", *arguments)
    assert result.returncode == (3 if missing else 0), result.stderr
    assert missing in result.stderr
    sweep = state(folder)
    assert sweep.planned is not None
    assert before.keys() <= sweep.sealed.keys() == {cell.name for cell in sweep.planned.cells}
    lines = (out / "tables.md").read_text(encoding="utf-8").splitlines()
    if table == "p1a-budget":
        report = json.loads(here("report", folder, "--format", "json").stdout)
        right = {row["backend"]: row["metrics"]["all"]["value"] for row in report["runs"][0]["rows"]}
        ours = [line.split("|")[-2].strip() for line in lines if "| ours |" in line]
        assert ours == [f"{right[name]:.3f}" for name in ("oracle", "all_14k", "all_38k")]
    assert sum("| ours |" in line for line in lines) == 3 if table == "p1a-budget" else 1
    assert "\\begin{tabular}" in (out / "tables.tex").read_text(encoding="utf-8")
    assert "<table" in (out / "tables.html").read_text(encoding="utf-8")
