"""Tests that a checked-in log gives the checked-in reports, byte for byte, each time it is scored.

JSON and terminal text are compared completely; Markdown, LaTeX and HTML, which show the same figures, in parts.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from memarena.log.store import LOG_NAME, read_records

from ..support import golden_judged, golden_run
from ..support.golden_reports import JUDGED_REPORTS, REPORTS, golden, render

HOW = "python -m tests.support.golden_run (from the root of the repository) writes it again, if the change is meant"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A copy of the run, since readers of a log leave files next to it."""
    return shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run")


@pytest.mark.parametrize("name", REPORTS)
def test_the_reports_of_the_checked_in_log_are_the_golden_ones(run_dir: Path, name: str) -> None:
    expected = (golden_run.GOLDEN / name).read_text(encoding="utf-8")
    assert golden(name, render(run_dir, name)) == expected, f"tests/golden/{name} differs; {HOW}"


def test_scoring_twice_gives_the_same_bytes_and_does_not_change_the_log(run_dir: Path) -> None:
    log_before = (run_dir / LOG_NAME).read_bytes()
    first = {name: render(run_dir, name) for name in REPORTS}
    assert {name: render(run_dir, name) for name in REPORTS} == first
    assert (run_dir / LOG_NAME).read_bytes() == log_before


def test_the_checked_in_log_is_the_one_that_its_builder_makes(run_dir: Path) -> None:
    assert list(read_records(run_dir)) == golden_run.records(), HOW


# ------------------------------------------------------------------ judged by a model


@pytest.fixture
def judged_dir(tmp_path: Path) -> Path:
    return shutil.copytree(golden_judged.JUDGED_RUN, tmp_path / "judged")


@pytest.mark.parametrize("name", JUDGED_REPORTS)
def test_the_reports_of_a_run_judged_by_a_model_are_the_golden_ones(judged_dir: Path, name: str) -> None:
    expected = (golden_judged.EXPECTED / name).read_text(encoding="utf-8")
    text = render(judged_dir, name, golden_judged.JUDGE)
    assert text == expected, f"tests/golden/judged/{name} differs; {HOW}"


def test_the_checked_in_judged_log_is_the_one_that_its_builder_makes(judged_dir: Path) -> None:
    assert list(read_records(judged_dir)) == golden_judged.records(), HOW
