"""The backend in TypeScript builds from a clean copy, passes its own tests and the suite, and can be scored."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.conformance import restart_by, result_line, run_suite
from memarena.execution.backends.manifests import load_manifest
from memarena.execution.backends.process import LaunchError, launch
from typer.testing import CliRunner

from tests.conformance.support import restartable

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "backends" / "example_typescript"
SOURCES = ("package.json", "package-lock.json", ".npmrc", "tsconfig.json", "backend.toml", "src", "test")

needs_node = pytest.mark.skipif(
    shutil.which("npm") is None and not os.environ.get("CI"), reason="npm is not installed (Node 20 or newer)"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout with nothing but the contract and this backend, built as its README says."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "proto" / "memarena", root / "proto" / "memarena")
    shutil.copytree(ROOT / "proto" / "vectors", root / "proto" / "vectors")
    folder = root / "backends" / "example_typescript"
    folder.mkdir(parents=True)
    for name in SOURCES:
        source = FOLDER / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    for command in (["npm", "ci", "--no-progress"], ["npm", "run", "build"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    yield folder


@needs_node
def test_its_own_tests_pass(built: Path) -> None:
    done = subprocess.run(["npm", "test"], cwd=built, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert "# pass 32" in done.stdout or "pass 32" in done.stdout


@needs_node
def test_it_passes_the_suite_with_sigkill_in_between(built: Path, tmp_path: Path) -> None:
    with restartable(["node", str(built / "dist" / "src" / "main.js")], tmp_path) as backend:
        result = run_suite(backend.address, restart=restart_by(backend.restart_command))
    assert [result_line(each) for each in result.results if each.status == "failed"] == []
    assert result.passed
    assert "hlt.restart" not in result.ids("skipped")
    assert not any(check.startswith("ans.") for check in set(result.ids("skipped")) - {"ans.undeclared"})


@needs_node
def test_a_run_scores_it_beside_another(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["--dataset", str(ROOT / "tests" / "data" / "example"), "--backend", f"bm25,{built}/backend.toml"]
    arguments += ["--reader", "extractive", "--out", str(out), "--floor-samples", "0", "--limit", "6"]
    done = CliRunner().invoke(app, ["run", *arguments])
    assert done.exit_code == 0, done.output
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
