"""``end_of_horizon``: the days of all persons, then all questions; killed or crashed into, too."""

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
    """A run with all days first that nothing disturbed."""
    out = tmp_path_factory.mktemp("days_first") / "run"
    done = here(*DAYS_FIRST, "--backend", "bm25", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_end_of_horizon_asks_everything_after_the_last_day(days_first: Path) -> None:
    assert {r.day for r in asked(days_first)} == {1}
    assert settled(days_first) == ["ingest"] * 6 + ["asked"] * 35, "all persons' days come before any question"


@pytest.mark.parametrize("after", [3, 20])
def test_a_run_with_all_days_first_resumes_to_the_same_answers(days_first: Path, tmp_path: Path, after: int) -> None:
    """Killed while days come in, and while questions are asked: every memory is proven before any more is asked."""
    out = tmp_path / "run"
    process = start(*DAYS_FIRST, "--backend", "bm25", "--out", out)
    wait_until(lambda: count(out, "ingest", "asked") >= after, process)
    assert survivors(kill(process)) == []
    before = len(settled(out))
    done = here("run", "--out", out, "--resume")
    assert done.returncode == 0, done.stderr
    assert answers(out) == answers(days_first)
    assert set(times_answered(out).values()) == {1}
    later = settled(out)[before:]
    assert later == sorted(later, key="asked".__eq__), "the days that were left come in before what is left is asked"


def settled(run: Path) -> list[str]:
    """Days and questions in the order of the log."""
    return [r.kind for r in read_records(run, "ingest", "asked")]


def test_a_crash_with_all_days_first_is_found_out_for_every_person(tmp_path: Path) -> None:
    """The backend dies in the last person's days and has forgotten the others' as well: all come in again."""
    out = tmp_path / "run"
    done = here(*DAYS_FIRST, "--backend", faulty(tmp_path, "amnesia:6"), "--out", out)
    assert done.returncode == 0, done.stderr
    assert {r.status for r in asked(out)} == {"answered"}
    assert sorted(attempt for _, attempt in namespaces(out)) == [0, 0, 0, 1, 1, 1]
