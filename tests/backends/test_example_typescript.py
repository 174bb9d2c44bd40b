"""Tests a scored run of the TypeScript backend (`make typescript` tests it, `make conformance` checks the contract)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.execution.backends.manifests import load_manifest
from memarena.execution.backends.process import LaunchError, launch
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "backends" / "example_typescript"
BUILT = FOLDER / "dist" / "src" / "main.js"


@pytest.mark.skipif(not BUILT.exists() and not os.environ.get("CI"), reason="it is not built (make typescript)")
def test_a_run_scores_it_next_to_another(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["--dataset", str(ROOT / "tests" / "data" / "example"), "--backend", f"bm25,{FOLDER}/backend.toml"]
    arguments += ["--reader", "extractive", "--out", str(out), "--floor-samples", "0", "--limit", "6"]
    result = CliRunner().invoke(app, ["run", *arguments])
    assert result.exit_code == 0, result.output
    report = CliRunner().invoke(app, ["report", str(out), "--format", "md"])
    assert "example_typescript" in report.stdout
    assert "bm25" in report.stdout


def test_what_is_not_built_is_said_in_one_line(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "backend.toml", tmp_path / "backend.toml")
    (backend,) = load_manifest(tmp_path / "backend.toml")
    if shutil.which("node") is not None:
        assert backend.missing() == f"dist/src/main.js is missing in {tmp_path.name}: run make typescript"
    with pytest.raises(LaunchError, match=r"example_typescript cannot be started: .* (missing|not installed)"):
        launch(backend, tmp_path / "cell")


def test_the_lock_file_keeps_hashes_and_no_addresses() -> None:
    lines = (FOLDER / "package-lock.json").read_text(encoding="utf-8").splitlines()
    assert not any('"resolved"' in line for line in lines)
    assert sum('"integrity"' in line for line in lines) >= 30
