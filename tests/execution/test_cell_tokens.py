"""Tests cell tokens (MEMARENA_CELL_TOKEN): a fixed key for a backend whose own server is configured only once.

Model calls of that server are attributed to the RPC that was pending.
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
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import GatewayCall, QuestionAsked
from memarena.log.store import read_records
from memarena_dataset.programs import run_guarded
from memarena_proto import memory_backend_pb2 as pb

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
TOKEN = "configured-once-and-for-all"

ASKED = "Context:\n- Rain.\n\nQuestion: What is new?"


class ConfiguredOnce(CapturingBackend):
    """Calls the model ``extractor`` with the fixed key ``token``, or, without one, with the token of each request."""

    def __init__(self, token: str | None) -> None:
        super().__init__()
        self.token = token
        self.access: list[pb.ModelAccess] = []
        self.statuses: list[int] = []

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        response = super().Describe(request, context)
        response.capabilities.append(pb.CAPABILITY_CELL_MODEL_ACCESS)
        return response

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        frames = list(request_iterator)
        self._ask(frames[0].header.model_access)
        return super().Ingest(iter(frames), context)

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        self._ask(request.model_access)
        return super().Search(request, context)

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        self._ask(request.search.model_access)
        yield from super().Answer(request, context)

    def _ask(self, access: pb.ModelAccess) -> None:
        self.access.append(access)
        body = {
            "model": "extractor",
            "messages": [{"role": "user", "content": ASKED}],
            "max_tokens": 8,
        }
        headers = {"Authorization": f"Bearer {self.token or access.token}", "Content-Type": "application/json"}
        url = f"{access.base_url}/chat/completions"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as reply:
                self.statuses.append(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                self.statuses.append(error.code)


def run_of(backend: ConfiguredOnce, out: Path, cell_token: str | None) -> list[GatewayCall]:
    values = {
        "dataset": EXAMPLE,
        "backends": [f"configured={backend.address}"],
        "readers": [{"spec": "extractive"}],
        "limit": 2,
        "floor_samples": 0,
    }
    request = RunRequest(out=out, config=parse_config(values, "test"), cell_token=cell_token)
    assert execute(request).reason == "completed"
    return [r for r in read_records(out, "gateway_call") if isinstance(r, GatewayCall)]


@pytest.mark.parametrize("cell_token", [TOKEN, None])
def test_calls_of_the_backends_own_server_are_attributed_to_the_pending_rpc(
    tmp_path: Path, cell_token: str | None
) -> None:
    with ConfiguredOnce(cell_token) as backend:
        calls = [call for call in run_of(backend, tmp_path, cell_token) if call.inferred]
    assert set(backend.statuses) == {200}
    assert len(calls) == len(backend.statuses)
    assert {call.phase for call in calls} == {"ingest", "search", "answer"}
    assert all(call.day is not None and call.ego for call in calls)
    questions = [r for r in read_records(tmp_path, "asked") if isinstance(r, QuestionAsked)]
    ids = {call.call_id for call in calls if call.phase in ("search", "answer")}
    assert {call_id for question in questions for call_id in question.gateway_call_ids} == ids
    # SPEC.md MOD-8: the same model access with every call.
    assert len({access.SerializeToString() for access in backend.access}) == 1
    assert backend.access[0].token == (cell_token or backend.access[0].token)
    assert [pb.ModelRole.Name(model.role) for model in backend.access[0].models] == [
        "MODEL_ROLE_READER",
        "MODEL_ROLE_EXTRACTOR",
    ]


def test_calls_with_another_key_are_refused_and_logged(tmp_path: Path) -> None:
    with ConfiguredOnce("some-other-key-altogether") as backend:
        calls = run_of(backend, tmp_path, TOKEN)
    assert set(backend.statuses) == {401}
    refused = [call for call in calls if call.phase == "refused"]
    assert len(refused) == len(backend.statuses)
    assert {call.error for call in refused} == {"unknown token"}


@pytest.mark.parametrize("token", ["short", "sixteen characters", "sixteen\tcharacters-", "sechzehn-zeichen-ä"])
def test_a_cell_token_unfit_for_a_header_gives_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], token: str
) -> None:
    monkeypatch.setenv("MEMARENA_CELL_TOKEN", token)
    arguments = ["run", "--dataset", str(EXAMPLE), "--backend", "bm25", "--reader", "extractive"]
    monkeypatch.setattr("sys.argv", ["memarena", *arguments, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        run_guarded(app)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: MEMARENA_CELL_TOKEN: expected at least 16 printable ASCII characters")
    assert not (tmp_path / "run").exists()
