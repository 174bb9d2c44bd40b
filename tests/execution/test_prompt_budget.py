"""Tests the prompt budget: a prompt above the question's budget fails the question, and the report says why.

Without the budget a memory could gain by filling the prompt with all that it has.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from memarena.cli.main import app
from memarena.cli.run import finish
from memarena.execution.audit.life_audit import BEYOND
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.log.records import GatewayCall, QuestionAsked
from memarena.log.store import read_records
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
ABOVE = "the prompt is above the question's budget: context, question, scaffold and a margin"


class Reads(CapturingBackend):
    """Sends the reader a prompt with ``context_bytes`` of context, and completes whatever the reader answers.

    With ``smuggles`` it adds the longest turn that it ingested.
    """

    def __init__(self, context_bytes: int, retrieved: int = 1, seen_day: int = 0, smuggles: int = 0) -> None:
        super().__init__()
        self._words = "word " * (context_bytes // 5)
        self._smuggles = smuggles
        self._retrieved = retrieved
        self._seen_day = seen_day

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        items = [pb.MemoryItem(text="Somebody said something.")] * self._retrieved
        day = request.search.as_of_day + self._seen_day
        yield pb.AnswerEvent(retrieved=pb.Retrieved(items=items, visible_through_day=day))
        access = request.search.model_access
        frames = map(pb.IngestRequest.FromString, self.of("Ingest") if self._smuggles else ())
        turns = [turn.text for frame in frames for turn in frame.session.turns]
        context_of_it = "\n- ".join([self._words, *sorted(turns, key=len)[-1:]])
        prompt = f"Context:\n- {context_of_it}\n\nQuestion: What did somebody say?"
        body = {"model": request.reading.model, "messages": [{"role": "user", "content": prompt}]}
        call = urllib.request.Request(
            f"{access.base_url}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call, timeout=10) as reply:
                reply.read()
        except urllib.error.HTTPError as error:
            with error:
                assert (error.code, json.load(error)["error"]["code"]) == (429, "prompt_above_budget")
        yield pb.AnswerEvent(text_delta=pb.TextDelta(text="I do not know."))
        yield pb.AnswerEvent(completed=pb.Completed(text="I do not know.", finish_reason=pb.FINISH_REASON_STOP))


def run_of(backend: CapturingBackend, out: Path, **more: object) -> tuple[RunOutcome, list[QuestionAsked]]:
    values = {
        "dataset": EXAMPLE,
        "backends": [f"odd={backend.address}"],
        "readers": [{"spec": "extractive"}],
        "limit": 2,
        "floor_samples": 0,
        "max_context_tokens": 512,
        **more,
    }
    with backend:
        outcome = execute(RunRequest(out=out, config=parse_config(values, "test")))
    return outcome, [r for r in read_records(out, "asked") if isinstance(r, QuestionAsked)]


def test_a_prompt_above_the_budget_fails_the_question_and_the_report_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    outcome, questions = run_of(Reads(40_000), out)
    assert {(r.status, r.cause) for r in questions} == {("backend_failed", f"Answer: CONTRACT: {ABOVE}")}
    calls = [r for r in read_records(out, "gateway_call") if isinstance(r, GatewayCall) and r.phase == "refused"]
    assert {(c.refusal, c.status) for c in calls} == {("prompt_above_budget", 429)}
    with pytest.raises(SystemExit) as ended:
        finish(outcome, out)
    assert ended.value.code == 3
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("warning: the backend failed every question of 1 of 1 cells; the causes: memarena report")
    for form in ("table", "html", "json"):
        file = tmp_path / f"report.{form}"
        result = CliRunner().invoke(app, ["report", str(out), "--format", form, "--out", str(file)])
        assert result.exit_code == 0, result.output
        report_text = " ".join(file.read_text(encoding="utf-8").split())
        assert "the prompt is above the question" in report_text
        assert form == "json" or "the backend failed every question of 1 of 1 cell: nothing was measured" in report_text


def test_a_prompt_within_the_budget_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome, questions = run_of(Reads(2048), tmp_path / "run")
    assert {r.status for r in questions} == {"answered"}
    finish(outcome, tmp_path / "run")
    assert "warning" not in capsys.readouterr().err


def test_a_prompt_with_an_ingested_turn_that_was_not_retrieved_fails_the_question(tmp_path: Path) -> None:
    _, questions = run_of(Reads(100, smuggles=1), tmp_path / "bound")
    assert {r.status for r in questions} == {"backend_failed"}
    assert all(r.cause.startswith(f"Answer: CONTRACT: {BEYOND}: turn ") for r in questions)


@pytest.mark.parametrize(
    ("backend", "bounds", "reason"),
    [
        ({"retrieved": 4}, {"max_items": 3}, "4 items where max_items is 3"),
        ({"retrieved": 100}, {}, "600 tokens of items where max_context_tokens is 512"),
        ({"seen_day": 1}, {}, "asked as of day"),
    ],
)
def test_retrieved_is_held_to_the_bounds_of_the_search(
    tmp_path: Path, backend: dict[str, int], bounds: dict[str, object], reason: str
) -> None:
    _, questions = run_of(Reads(100, **backend), tmp_path / "run", **bounds)
    assert {r.status for r in questions} == {"backend_failed"}
    assert all(r.cause.startswith("Answer: CONTRACT: Retrieved: ") and reason in r.cause for r in questions)
