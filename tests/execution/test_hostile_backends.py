"""Tests a run of hostile (hostile.py) and honest backends: it ends, no trick gains a point, no honest one loses."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.client import backend as client
from memarena.evaluation import evaluate
from memarena.execution.backends import session as link
from memarena.execution.cells import ingest
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.log.records import Outcome, Question, QuestionAsked
from memarena.log.store import read_records

from tests.e2e.harnessing import here

from .capture import CapturingBackend
from .hostile import (
    CELL_TRICKS,
    DESCRIBED,
    ERRORS,
    QUESTION_TRICKS,
    STREAMS,
    WORDS,
    HostileBackend,
    TricksterBackend,
    describing,
)

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
MOST_MEMORY_KB = 1 << 20
TRICKS_A_CELL = 30
COSTS_NOTHING = {"ingest.nothing-said", "ingest.days-to-come"}
"""Wrong values of ``visible_through_day``: the run records them as problems, and no score depends on them."""


@dataclass(frozen=True)
class Played:
    """A finished run; ``tricks`` holds the name of the trick by (backend, instance id)."""

    out: Path
    tricks: dict[tuple[str, str], str]
    peak_growth_kb: int

    def asked(self) -> dict[tuple[str, str], QuestionAsked]:
        """Return the last attempt at each question, by (backend, instance id)."""
        records = (r for r in read_records(self.out, "asked") if isinstance(r, QuestionAsked))
        return {(r.cell_id.partition("@")[0], r.instance_id): r for r in records}


def play(backends: dict[str, CapturingBackend], out: Path) -> RunOutcome:
    """Run all questions of the example against these backends."""
    values = {
        "dataset": EXAMPLE,
        "backends": [f"{name}={backend.address}" for name, backend in backends.items()],
        "readers": [{"spec": "extractive"}],
        "meters": ["none"],
        "floor_samples": 0,
    }
    return execute(RunRequest(out=out, config=parse_config(values, "test")))


def status_kb(field: str) -> int:
    """Return a field of /proc/self/status in kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    out = tmp_path_factory.mktemp("hostile") / "run"
    names = list(QUESTION_TRICKS)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        # Shorter waits and a lower limit, so that the test is quick; that there is a limit is not changed.
        patch.setattr(ingest, "_LONGEST_WAIT_S", 0.01)
        patch.setattr(ingest, "_BACKOFF_S", 0.001)
        patch.setattr(link, "_DROP_GRACE_S", 0.01)
        patch.setattr(client, "MAX_ANSWER_DELTAS", 1 << 12)
        backends: dict[str, CapturingBackend] = {"first": stack.enter_context(CapturingBackend())}
        for start in range(0, len(names), TRICKS_A_CELL):
            tricks = {name: QUESTION_TRICKS[name] for name in names[start : start + TRICKS_A_CELL]}
            backends[f"trickster-{start}"] = stack.enter_context(TricksterBackend(tricks))
        for name, (rpc, trick) in CELL_TRICKS.items():
            backends[name] = stack.enter_context(HostileBackend(rpc, trick))
        backends["last"] = stack.enter_context(CapturingBackend())
        # Reset the peak of this process: earlier tests may have had a higher one.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before_kb = status_kb("VmHWM")
        outcome = play(backends, out)
        peak_growth_kb = status_kb("VmHWM") - before_kb
    assert (outcome.reason, outcome.left) == ("completed", 0)
    ids = {
        (r.question_text, r.asker_name if r.requester_kind == "known_person" else ""): r.instance.instance_id
        for r in read_records(out, "question")
        if isinstance(r, Question)
    }
    tricks_played = {
        (name, ids[question]): trick
        for name, backend in backends.items()
        if isinstance(backend, TricksterBackend)
        for question, trick in backend.done.items()
    }
    assert set(tricks_played.values()) == set(QUESTION_TRICKS), "every trick was done"
    return Played(out, tricks_played, peak_growth_kb)


def test_each_trick_fails_only_its_own_question_and_honest_backends_are_answered(played: Played) -> None:
    failing = {f"{rpc}.{name}" for rpc in ("search", "answer") for name in ERRORS}
    failing |= {f"answer.{name}" for name in STREAMS} | {
        "search.items-many",
        "search.items-endless",
        "search.horizon-odd",
    }
    failing |= {"search.score-none", "search.items-empty"}
    unexpected = {}
    for (backend, instance), attempt in played.asked().items():
        trick = played.tricks.get((backend, instance), "")
        should_fail = backend in CELL_TRICKS.keys() - COSTS_NOTHING or trick in failing
        if (attempt.status, attempt.lost) != ("backend_failed" if should_fail else "answered", False):
            unexpected[backend, trick] = attempt
    assert {key: (attempt.status, attempt.lost, attempt.cause) for key, attempt in unexpected.items()} == {}


def test_a_long_failure_message_is_truncated(played: Played) -> None:
    assert max(len(attempt.cause) for attempt in played.asked().values()) < 3000


def test_too_many_items_are_refused_unread_and_notices_are_truncated(played: Played) -> None:
    attempts = {played.tricks.get(key, ""): attempt for key, attempt in played.asked().items()}
    assert attempts["search.items-endless"].cause == "Search: CONTRACT: Search: 70000 items, the limit is 65536"
    search = attempts["search.notices"].search
    assert search is not None
    assert search.notices[-1].text == "notices.left_out ×936"
    assert sum(len(notice.text) for notice in search.notices) < 100_000


def test_memory_stays_within_bounds(played: Played) -> None:
    assert played.peak_growth_kb < MOST_MEMORY_KB


def test_no_trick_is_scored_in_the_backends_favour(played: Played) -> None:
    scored = evaluate(played.out, resamples=0)
    outcomes = {(q.cell_id.partition("@")[0], q.instance_id): q.outcome for q in scored.questions}
    for key, trick in played.tricks.items():
        assert outcomes[key] in {Outcome.WRONG, Outcome.BACKEND_FAILED, outcomes["first", key[1]]}, trick
        if trick.removeprefix("answer.") in WORDS:
            assert outcomes[key] is not Outcome.CORRECT or outcomes["first", key[1]] is Outcome.CORRECT, trick


def test_there_are_at_least_80_tricks() -> None:
    assert len(QUESTION_TRICKS) + len(CELL_TRICKS) + len(DESCRIBED) >= 80


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_backend_with_an_invalid_description_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    """It is refused before the log is made, so that the run can be started again in the same folder."""
    with HostileBackend("Describe", DESCRIBED[name]) as backend, pytest.raises(RunError) as refused:
        play({"odd": backend}, tmp_path / "run")
    assert "--backend odd" in str(refused.value)
    assert len(str(refused.value)) < 1000
    assert not (tmp_path / "run" / "run.sqlite").exists()


def test_control_characters_in_a_backends_name_are_not_printed(tmp_path: Path) -> None:
    with HostileBackend("Describe", describing("\x1b]0;title\x07", "\x1b[2J")) as backend:
        result = here(
            *("run", "--dataset", EXAMPLE, "--backend", f"odd={backend.address}", "--reader", "extractive"),
            *("--out", tmp_path / "run"),
        )
    assert result.returncode == 2
    assert "\ufffd[2J" in result.stderr
    assert [c for c in result.stdout + result.stderr if not c.isprintable() and c != "\n"] == []
