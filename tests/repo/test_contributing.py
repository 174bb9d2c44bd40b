"""Tests that the backend in CONTRIBUTING.md works unchanged, and that docs/backends.md describes every field.

A vendor starts from that code: if it failed the contract or the style checks, so would the first backend that is built
on it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from memarena.conformance import result_line, run_suite
from memarena.execution.backends.manifests import (
    BackendManifest,
    ConformanceVariant,
    LaunchableBackend,
    choose_backend,
)
from memarena.execution.backends.process import launch

from tests.e2e.harnessing import EXAMPLE, asked, here

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FIELDS = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")


def code(language: str) -> str:
    """The one piece of code of a language in the guide."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)
    return str(block)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's folder as the guide says to make it, outside the repository."""
    example_folder = tmp_path_factory.mktemp("guide") / "shared_words"
    example_folder.mkdir()
    (example_folder / "backend.toml").write_text(code("toml"), encoding="utf-8")
    (example_folder / "shared_words.py").write_text(code("python"), encoding="utf-8")
    return example_folder


def test_the_example_is_short_and_passes_the_checks_of_style() -> None:
    assert len(code("toml").splitlines()) + len(code("python").splitlines()) < 55
    for how in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *how, "--no-cache", "--stdin-filename", "backends/example.py", "-"]
        result = subprocess.run(ruff, cwd=ROOT, input=code("python"), capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout


def test_the_example_keeps_the_contract(folder: Path, tmp_path: Path) -> None:
    """The chapters that depend on the memory itself; `make conformance ARGS=FOLDER` runs all of them."""
    backend = choose_backend(str(folder))
    assert isinstance(backend, LaunchableBackend)
    process = launch(backend, tmp_path)
    try:
        result = run_suite(process.address, only=("dsc", "src", "rst"))  # Describe, Search, Reset
    finally:
        process.stop()
    assert [result_line(each) for each in result.results if each.status == "failed"] == []
    assert result.passed
    assert "src.sources" in result.ids("passed")


def test_the_example_takes_part_in_a_run(folder: Path, tmp_path: Path) -> None:
    flags = ["--reader", "extractive", "--limit", "4", "--floor-samples", "0"]
    result = here("run", "--dataset", EXAMPLE, "--backend", folder, *flags, "--out", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    ended = asked(tmp_path / "run")
    assert {question.cell_id.split("@")[0] for question in ended} == {"shared_words"}
    assert [question.status for question in ended] == ["answered"] * 4


# "`make " begins the paragraph of docs/backends.md whose table describes the variants.
@pytest.mark.parametrize(("model", "heading"), [(BackendManifest, "## backend.toml"), (ConformanceVariant, "`make ")])
def test_every_field_of_a_manifest_is_described(
    model: type[BackendManifest] | type[ConformanceVariant], heading: str
) -> None:
    table = FIELDS.split(f"\n{heading}", 1)[1].split("| --- |", 1)[1].split("\n\n", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (yes)? ?\|$", table, flags=re.MULTILINE)
    expected = [(name, "yes" if field.is_required() else "") for name, field in model.model_fields.items()]
    assert sorted(rows) == sorted(expected)
