"""Tests the protocol ``end_of_horizon``: the days of all egos, then all questions; also after kills and crashes."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.log.store import read_records

from .harnessing import (
    EXAMPLE,
    answers,
    asked,
    count,
    faulty,
    here,
    kill,
    namespaces,
    start,
    survivors,
    times_answered,
    wait_until,
)

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

RUN = ("run", "--dataset", EXAMPLE, "--reader", "extractive", "--floor-samples", "0", "--meter", "none")
DAYS_FIRST = (*RUN, "--protocol", "end_of_horizon")


@pytest.fixture(scope="module")
def days_first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run with the protocol ``end_of_horizon``."""
    out = tmp_path_factory.mktemp("days_first") / "run"
    result = here(*DAYS_FIRST, "--backend", "bm25", "--out", out)
    assert result.returncode == 0, result.stderr
    return out


def test_end_of_horizon_asks_everything_after_the_last_day(days_first: Path) -> None:
    assert {r.day for r in asked(days_first)} == {1}
    assert settled(days_first) == ["ingest"] * 6 + ["asked"] * 35, "all persons' days come before any question"


@pytest.mark.parametrize("after", [3, 20])
def test_a_run_with_all_days_first_resumes_to_the_same_answers(days_first: Path, tmp_path: Path, after: int) -> None:
    """The run is killed during the days and during the questions; every memory is verified before the next question."""
    out = tmp_path / "run"
    process = start(*DAYS_FIRST, "--backend", "bm25", "--out", out)
    wait_until(lambda: count(out, "ingest", "asked") >= after, process)
    assert survivors(kill(process)) == []
    events_before = len(settled(out))
    result = here("run", "--out", out, "--resume")
    assert result.returncode == 0, result.stderr
    assert answers(out) == answers(days_first)
    assert set(times_answered(out).values()) == {1}
    later = settled(out)[events_before:]
    assert later == sorted(later, key="asked".__eq__), "the days that were left come in before what is left is asked"


def settled(run: Path) -> list[str]:
    """Return days and questions in the order of the log."""
    return [r.kind for r in read_records(run, "ingest", "asked")]


def test_a_crash_with_all_days_first_repairs_every_ego(tmp_path: Path) -> None:
    """The backend dies in the last ego's days and has lost the others' too: all days are sent again."""
    out = tmp_path / "run"
    result = here(*DAYS_FIRST, "--backend", faulty(tmp_path, "amnesia:6"), "--out", out)
    assert result.returncode == 0, result.stderr
    assert {r.status for r in asked(out)} == {"answered"}
    assert sorted(attempt for _, attempt in namespaces(out)) == [0, 0, 0, 1, 1, 1]
