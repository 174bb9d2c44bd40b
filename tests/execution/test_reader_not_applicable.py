"""Tests prompts in which the extractive reader recognises no context or question: unscored, and reported as such."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest
from memarena.cli.main import app
from memarena.cli.run import finish
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import GatewayCall, QuestionAsked
from memarena.log.store import read_records
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
ODD = "Tell me about it in your own words, and be kind."
SOUND = "Context:\n- Somebody said something.\n\nQuestion: What did somebody say?"


class Prompts(CapturingBackend):
    """Sends the reader these prompts in every Answer, in turn, and completes whatever the reader answers."""

    def __init__(self, prompts: Sequence[str]) -> None:
        super().__init__()
        self._prompts = prompts

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        yield pb.AnswerEvent(retrieved=pb.Retrieved(visible_through_day=request.search.as_of_day))
        access = request.search.model_access
        for prompt in self._prompts:
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
                    assert error.code == 422
        yield pb.AnswerEvent(text_delta=pb.TextDelta(text="I do not know."))
        yield pb.AnswerEvent(completed=pb.Completed(text="I do not know.", finish_reason=pb.FINISH_REASON_STOP))


def test_an_unreadable_prompt_ends_the_question_and_removes_the_headline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with Prompts([ODD]) as odd, Prompts([ODD, SOUND]) as retries:
        values = {
            "dataset": EXAMPLE,
            "backends": [f"odd={odd.address}", f"retries={retries.address}"],
            "readers": [{"spec": "extractive"}],
            "limit": 2,
            "floor_samples": 0,
        }
        outcome = execute(RunRequest(out=out, config=parse_config(values, "test")))
    questions = [r for r in read_records(out, "asked") if isinstance(r, QuestionAsked)]
    assert {(r.cell_id.split("@")[0], r.status) for r in questions} == {
        ("odd", "reader_not_applicable"),
        ("retries", "answered"),
    }
    assert len(questions) == 4  # none is retried: the prompts would be the same again
    assert {"finds no" in r.cause for r in questions if r.status != "answered"} == {True}
    calls = [r for r in read_records(out, "gateway_call") if isinstance(r, GatewayCall) and r.phase == "answer"]
    assert {(c.status, c.upstream_code) for c in calls} == {(422, "prompt_not_understood"), (200, "")}

    with pytest.raises(SystemExit) as ended:
        finish(outcome, out)
    assert ended.value.code == 3
    last = capsys.readouterr().err.splitlines()[-1]
    assert "in 1 of 2 cells" in last and "--central-reading" in last

    reports = {}
    for form in ("table", "html", "json"):
        file = tmp_path / f"report.{form}"
        result = CliRunner().invoke(app, ["report", str(out), "--format", form, "--out", str(file)])
        assert result.exit_code == 0, result.output
        reports[form] = " ".join(file.read_text(encoding="utf-8").split())
        assert "--central-reading" in reports[form]
    assert "reader not applicable: in 2 questions it finds no context or no question" in reports["table"]
    assert "reader not applicable: in 2 questions" in reports["html"]
    rows = {row["backend"]: row for row in json.loads(reports["json"])["runs"][0]["rows"]}
    assert rows["odd"]["counts"]["reader_not_applicable"] == 2
    assert rows["odd"]["metrics"]["all"]["value"] is None
    assert rows["retries"]["metrics"]["all"]["value"] is not None
