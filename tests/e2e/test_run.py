"""Tests whole runs with real parts: after kills, interrupts, crashes and resuming they end with the same answers."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import BackendDescribed, RunEnded
from memarena.log.store import LogFullError, LogWriter, log_path, read_records

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

from .harnessing import (
    EXAMPLE,
    Key,
    answers,
    asked,
    count,
    faulty,
    here,
    kill,
    namespaces,
    problems,
    start,
    survivors,
    times_answered,
    wait_until,
)

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

BACKENDS = "bm25,oracle"
LIMIT = 20
QUESTIONS = 2 * LIMIT
RUN = ("run", "--dataset", EXAMPLE, "--reader", "extractive", "--limit", str(LIMIT), "--floor-samples", "5")
"""With meters and the floor, as a user would run it: for tests of processes and files that may stay behind."""
QUIET = ("run", "--dataset", EXAMPLE, "--reader", "extractive", "--floor-samples", "0", "--meter", "none")
"""Without meters and floor: for tests of failing backends."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run."""
    out = tmp_path_factory.mktemp("whole") / "run"
    result = here(*RUN, "--backend", BACKENDS, "--out", out)
    assert result.returncode == 0, result.stderr
    return out


def test_every_question_is_asked_once_of_every_backend(whole: Path) -> None:
    counts = times_answered(whole)
    assert len(counts) == QUESTIONS
    assert set(counts.values()) == {1}
    assert {r.status for r in asked(whole)} == {"answered"}
    assert [r.reason for r in read_records(whole, "run_ended") if isinstance(r, RunEnded)] == ["completed"]
    kinds = {r.name: r.backend_kind for r in read_records(whole) if isinstance(r, BackendDescribed)}
    assert kinds == {"bm25": "competitor", "oracle": "diagnostic"}


def test_oracle_shows_exactly_the_evidence_and_others_name_their_sources(whole: Path) -> None:
    questions = {r.instance.instance_id: r.instance for r in read_records(whole, "question") if r.kind == "question"}
    for result in asked(whole):
        assert result.search is not None
        sessions = {s for item in result.search.items for s in item.session_ids}
        assert not any(item.unknown_ids for item in result.search.items)
        if result.cell_id.startswith("oracle"):
            assert sessions == set(questions[result.instance_id].evidence_session_ids)
        else:
            assert sessions


def test_times_are_measured_for_every_answered_question(whole: Path) -> None:
    for result in asked(whole):
        assert result.search is not None
        assert result.search.t_search_ns
        assert result.answer is not None
        assert result.answer.ttft_ns
        assert result.answer.first_delta_ns
        assert result.answer.ttft_ns < result.answer.first_delta_ns


@pytest.mark.parametrize(
    "after", [pytest.param(1, marks=pytest.mark.gate), 24, pytest.param(34, marks=pytest.mark.gate)]
)
def test_a_killed_run_resumes_to_the_same_answers(whole: Path, tmp_path: Path, after: int) -> None:
    """SIGKILL in the first cell, and twice in the second.

    No process survives, and only the remaining questions are put to the backend, none twice.
    """
    out = tmp_path / "run"
    process = start(*RUN, "--backend", BACKENDS, "--out", out)
    wait_until(lambda: count(out, "asked") >= after, process)
    assert survivors(kill(process)) == []
    done_before = times_answered(out)
    assert after <= len(done_before) < QUESTIONS
    result = here("run", "--out", out, "--resume")
    assert result.returncode == 0, result.stderr
    assert answers(out) == answers(whole)
    assert set(times_answered(out).values()) == {1}


def test_a_run_killed_before_its_first_question_resumes(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(*RUN, "--backend", BACKENDS, "--out", out)
    wait_until(lambda: (out / "run.sqlite").exists() and any(out.glob("cells/*/address")), process)
    assert survivors(kill(process)) == []
    result = here("run", "--out", out, "--resume")
    assert result.returncode == 0, result.stderr
    assert answers(out) == answers(whole)


@pytest.mark.parametrize("stage", ["readers", "file", "schema"])
def test_a_run_killed_before_its_first_record_starts_when_resumed(tmp_path: Path, stage: str) -> None:
    """SIGKILL while readers start, after SQLite created its file, and after it created the tables."""
    out = tmp_path / "run"
    (out / "readers").mkdir(parents=True)
    if stage == "file":
        with closing(sqlite3.connect(log_path(out))) as db:
            db.execute("PRAGMA journal_mode=WAL")
    if stage == "schema":
        LogWriter(out).close()
    refused = here("run", "--out", out, "--resume")
    assert refused.returncode == 2
    assert "--dataset" in refused.stderr
    result = here(*QUIET, "--backend", "bm25", "--limit", "2", "--out", out, "--resume")
    assert result.returncode == 0, result.stderr
    assert len(times_answered(out)) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.gate)])
def test_ctrl_c_leaves_a_log_that_resumes(whole: Path, tmp_path: Path, number: int) -> None:
    out = tmp_path / "run"
    process = start(*RUN, "--backend", BACKENDS, "--out", out)
    wait_until(lambda: count(out, "asked") >= 12, process)
    assert survivors(kill(process, number)) == []
    assert process.returncode == 130
    ended = [r for r in read_records(out, "run_ended") if isinstance(r, RunEnded)]
    assert [r.reason for r in ended] == ["interrupted"]
    result = here(*RUN, "--backend", BACKENDS, "--out", out, "--resume")
    assert result.returncode == 0, result.stderr
    assert answers(out) == answers(whole)
    assert set(times_answered(out).values()) == {1}


def test_resuming_a_complete_run_asks_nothing(whole: Path) -> None:
    attempts_before = len(asked(whole))
    result = here("run", "--out", whole, "--resume")
    assert result.returncode == 0, result.stderr
    assert len(asked(whole)) == attempts_before


def test_a_full_disk_stops_the_run_and_loses_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's writer fails half-way; earlier records stay, and the run can be resumed once there is room."""
    out = tmp_path / "run"
    values = {"dataset": EXAMPLE, "backends": BACKENDS.split(","), "readers": [{"spec": "extractive"}]}
    request = RunRequest(out=out, config=parse_config({**values, "limit": LIMIT, "floor_samples": 0}, "test"))
    real, room = LogWriter.append, iter(range(60))

    def append(log: LogWriter, *records: object) -> None:
        if next(room, None) is None:
            raise LogFullError("run.sqlite: cannot write to the log: database or disk is full")
        real(log, *records)  # type: ignore[arg-type]

    monkeypatch.setattr(LogWriter, "append", append)
    with pytest.raises(LogFullError, match="disk is full"):
        execute(request)
    monkeypatch.undo()
    settled = len(times_answered(out))
    assert 0 < settled < QUESTIONS
    outcome = execute(RunRequest(out=out, resume=True))
    assert outcome.reason == "completed"
    assert answers(out) == answers(whole)
    assert set(times_answered(out).values()) == {1}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, str]:
    """Answers of the faulty backend if no fault occurs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    result = here(*QUIET, "--backend", faulty(folder, "none"), "--out", folder / "run")
    assert result.returncode == 0, result.stderr
    return answers(folder / "run")


@pytest.mark.parametrize(("after_crash", "opened"), [("verify", 0), ("fresh", 3)])
def test_a_question_lost_in_a_crash_is_retried(
    undisturbed: dict[Key, str], tmp_path: Path, after_crash: str, opened: int
) -> None:
    """Every tenth Search kills the process: it is started again, and the answers are those of an undisturbed run.

    By default the backend goes on in the same namespace after it has proved to hold it; a run may want a fresh one.
    """
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, "crash:10"), "--after-crash", after_crash, "--out", out)
    assert result.returncode == 0, result.stderr
    lost_attempts = [r for r in asked(out) if r.status != "answered"]
    assert len(lost_attempts) == 3
    assert all(r.status == "backend_failed" and "Search: UNAVAILABLE" in r.cause for r in lost_attempts)
    assert answers(out) == undisturbed
    assert sum("was started again: exit code" in message for message in problems(out)) == 3
    assert sum("it is asked again" in message for message in problems(out)) == 3
    assert sum(attempt > 0 for _, attempt in namespaces(out)) == opened


def test_a_question_lost_while_the_backend_terminates_is_retried(undisturbed: dict[Key, str], tmp_path: Path) -> None:
    """The process gets SIGTERM during the twentieth Search, which would take a minute more."""
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, "term:20"), "--out", out)
    assert result.returncode == 0, result.stderr
    assert [r.attempt for r in asked(out) if r.status != "answered"] == [0], "one call was lost, and none after it"
    assert answers(out) == undisturbed
    assert sum("was started again: exit code 0" in message for message in problems(out)) == 1


def test_a_question_that_kills_the_backend_twice_is_its_failure_and_no_other_is_lost(
    undisturbed: dict[Key, str], tmp_path: Path
) -> None:
    """One question kills the backend at both attempts."""
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, "poison:spaniel"), "--out", out)
    assert result.returncode == 0, result.stderr
    ended = answers(out)
    failed = {key for key, answer in ended.items() if answer.startswith("(backend_failed")}
    assert failed
    assert {key: answer for key, answer in ended.items() if key not in failed} == {
        key: answer for key, answer in undisturbed.items() if key not in failed
    }
    attempts = [r.attempt for r in asked(out) if (r.cell_id, r.instance_id) in failed]
    assert sorted(attempts) == [0] * len(failed) + [1] * len(failed)
    printed = here("report", out, "--format", "md").stdout
    row = next(line for line in printed.splitlines() if line.startswith("|") and "Search: UNAVAILABLE" in line)
    count, share = str(len(failed)), f"{100 * len(failed) / 35:.1f}"
    assert [cell.strip() for cell in row.split("|")][3:6] == ["backend", count, share], "its share is in the report"


def test_a_crash_on_the_last_question_of_a_person_costs_the_next_person_nothing(
    undisturbed: dict[Key, str], tmp_path: Path
) -> None:
    """Every 17th Search kills the process: one is the last of the first ego, before the next namespace is opened."""
    out = tmp_path / "run"
    manifest = faulty(tmp_path, "crash:17")
    config = {
        "dataset": EXAMPLE,
        "backends": [str(manifest)],
        "readers": [{"spec": "extractive"}],
        "lost_retries": 0,
        "floor_samples": 0,
    }
    assert execute(RunRequest(out=out, config=parse_config(config, "test"))).reason == "completed"
    failed = [r for r in asked(out) if r.status != "answered"]
    assert len(failed) == 2
    assert all(r.cause.startswith("Search: UNAVAILABLE") for r in failed)
    lost_questions = {(r.cell_id, r.instance_id) for r in failed}
    assert {k: v for k, v in answers(out).items() if k not in lost_questions} == {
        k: v for k, v in undisturbed.items() if k not in lost_questions
    }


def test_a_backend_that_lost_its_days_in_a_crash_gets_them_again(undisturbed: dict[Key, str], tmp_path: Path) -> None:
    """It crashes in the second day of the first ego and starts empty: a fresh namespace, the same answers."""
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, "amnesia:2"), "--out", out)
    assert result.returncode == 0, result.stderr
    assert answers(out) == undisturbed
    first = asked(out)[0].ego
    assert [(ego, attempt) for ego, attempt in namespaces(out) if attempt] == [(first, 1)]
    assert any("no longer knew day 0" in m and "into a fresh namespace" in m for m in problems(out))


def test_a_backend_is_started_again_as_often_as_configured(tmp_path: Path) -> None:
    """After that the ego's remaining questions fail, with the cause in the log."""
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, "crash:5"), "--backend-restarts", "2", "--out", out)
    assert result.returncode == 0, result.stderr
    assert sum("was started again: exit code" in message for message in problems(out)) == 2
    failed = [r for r in asked(out) if r.status == "backend_failed" and r.search is None]
    assert failed
    assert all("after 2 restarts, as many as are allowed" in r.cause for r in failed)


def test_a_backend_that_restarts_with_another_version_is_not_used_further(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, "moody:3"), "--out", out)
    assert result.returncode == 0, result.stderr
    causes = {r.cause for r in asked(out) if r.search is None}
    assert any("came back as another: Describe differs in version" in cause for cause in causes), causes


@pytest.mark.parametrize(("fault", "cause"), [("raise:10", "the index is broken"), ("slow:10", "DEADLINE_EXCEEDED")])
def test_an_exception_or_a_missed_deadline_is_the_backends_failure(tmp_path: Path, fault: str, cause: str) -> None:
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, fault), "--out", out, "--deadline", "search=1")
    assert result.returncode == 0, result.stderr
    failed = [r for r in asked(out) if r.status == "backend_failed"]
    assert len(failed) >= 3
    assert any(cause in r.cause for r in failed)
    assert all(r.search is not None and r.search.t_search_ns is None for r in failed)


def test_a_crash_during_an_ingest_is_repaired_by_sending_the_day_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", faulty(tmp_path, "crash-ingest:2"), "--out", out)
    assert result.returncode == 0, result.stderr
    assert {r.status for r in asked(out)} == {"answered"}
    ingests = [r for r in read_records(out, "ingest") if r.kind == "ingest"]
    assert [r.code for r in ingests].count("UNAVAILABLE") == 1
    assert sum(r.code == "OK" and not r.replayed for r in ingests) == 6
    assert [r.day for r in ingests if r.replayed] == [0]


def test_a_reader_that_fails_is_never_the_backends_fault(tmp_path: Path) -> None:
    """Questions whose model call failed are retried, stay open, and are repaired in a fresh namespace."""
    broken = True

    def script(body: object) -> Script:
        if broken and "spaniel" in str(body):
            return Script(status=500, message="out of memory")
        return Script()

    out = tmp_path / "run"
    with ModelServer(script) as reader:
        values = {
            "dataset": EXAMPLE,
            "backends": ["bm25"],
            "readers": [{"spec": reader.base_url}],
            "max_context_tokens": 64,
            "floor_samples": 0,
        }
        config = parse_config(values, "test")
        outcome = execute(RunRequest(out=out, config=config))
        open_questions = {r.instance_id for r in asked(out)} - {i for _, i in times_answered(out)}
        assert outcome.reason == "incomplete"
        assert outcome.left == len(open_questions) > 0
        failures = [r for r in asked(out) if r.status == "infra_failed"]
        assert len(failures) == 3 * len(open_questions)
        assert all("out of memory" in r.cause or "500" in r.cause for r in failures)
        broken = False
        assert execute(RunRequest(out=out, resume=True)).reason == "completed"
    repaired = [r for r in asked(out) if r.instance_id in open_questions and r.status == "answered"]
    assert {r.instance_id for r in repaired} == open_questions
    first = {r.instance_id: r.namespace for r in failures}
    early = [r for r in repaired if r.day == 0]
    assert early
    assert all(first[r.instance_id] != r.namespace for r in early)
    assert set(times_answered(out).values()) == {1}


def test_a_reader_that_hangs_past_the_deadline_is_not_the_backends_fault(tmp_path: Path) -> None:
    """Answer exceeds its deadline only because the model server does not reply."""

    def script(body: object) -> Script:
        return Script() if "greeting" in str(body) else Script(delay_s=4)

    out = tmp_path / "run"
    with ModelServer(script) as reader:
        values = {
            "dataset": EXAMPLE,
            "backends": ["bm25"],
            "readers": [{"spec": reader.base_url}],
            "limit": 1,
            "infra_retries": 0,
            "deadlines_s": {"answer": 1},
            "floor_samples": 0,
        }
        assert execute(RunRequest(out=out, config=parse_config(values, "test"))).reason == "incomplete"
    (result,) = asked(out)
    assert result.answer is not None
    assert result.answer.code == "DEADLINE_EXCEEDED"
    assert result.status == "infra_failed"
    assert "had not finished" in result.cause


def test_central_reading_gives_the_same_answers_as_the_backends_own(whole: Path, tmp_path: Path) -> None:
    """Kit and harness read with the same library."""
    out = tmp_path / "run"
    result = here(*QUIET, "--backend", "bm25", "--limit", str(LIMIT), "--central-reading", "--out", out)
    assert result.returncode == 0, result.stderr
    assert {r.answer.route for r in asked(out) if r.answer is not None} == {"central"}
    expected = {key: text for key, text in answers(whole).items() if key[0].startswith("bm25")}
    assert answers(out) == expected
