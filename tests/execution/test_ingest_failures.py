"""Tests failures of Ingest: a day is sent again where the contract allows it, and the blame is recorded correctly."""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from memarena.execution.cells import ingest
from memarena.execution.engine import execute
from memarena.execution.errors import InfraError
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import IngestDone, NamespaceOpened, Problem, QuestionAsked
from memarena.log.store import LogWriter, read_records
from memarena_proto import memory_backend_pb2 as pb

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
EXTRACT = "Extract what matters."


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a twentieth of the time before a call is repeated."""
    monkeypatch.setattr(ingest, "_BACKOFF_S", ingest._BACKOFF_S / 20)


class StumblingBackend(CapturingBackend):
    """Fails the first calls of Ingest with these codes, then works."""

    def __init__(self, *codes: grpc.StatusCode) -> None:
        super().__init__()
        self.codes = list(codes)

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        if self.codes:
            context.abort(self.codes.pop(0), "stumbled")
        return super().Ingest(request_iterator, context)


def ask_model(access: pb.ModelAccess) -> None:
    """Call the extractor once; raise HTTPError if the gateway reports an error."""
    body = f'{{"model": "{access.models[0].name}", "messages": [{{"role": "user", "content": "{EXTRACT}"}}]}}'
    request = urllib.request.Request(
        f"{access.base_url}/chat/completions",
        body.encode(),
        {"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as reply:
            reply.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise


class ExtractingBackend(CapturingBackend):
    """Asks the model once per day, and fails with UNAVAILABLE where the model's server does."""

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        frames = list(request_iterator)
        try:
            ask_model(frames[0].header.model_access)
        except urllib.error.HTTPError:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the model is away")
        return super().Ingest(iter(frames), context)


class CarelessBackend(ExtractingBackend):
    """Calls the model once per day, again after a failure if ``patient``, and always reports OK."""

    def __init__(self, *, patient: bool) -> None:
        super().__init__()
        self._patient = patient

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        frames = list(request_iterator)
        for _attempt in range(2 if self._patient else 1):
            with contextlib.suppress(urllib.error.HTTPError):
                ask_model(frames[0].header.model_access)
                break
        return CapturingBackend.Ingest(self, iter(frames), context)


def config(backend: CapturingBackend, reader: str) -> RunConfig:
    values = {
        "dataset": EXAMPLE,
        "backends": [f"under-test={backend.address}"],
        "readers": [{"spec": reader}],
        "floor_samples": 0,
    }
    return parse_config(values, "test")


def asked(run: Path) -> list[QuestionAsked]:
    return [r for r in read_records(run, "asked") if isinstance(r, QuestionAsked)]


def ingests(run: Path) -> list[IngestDone]:
    return [r for r in read_records(run, "ingest") if isinstance(r, IngestDone)]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([grpc.StatusCode.DEADLINE_EXCEEDED], "answered"),
        ([grpc.StatusCode.DATA_LOSS], "answered"),
        ([grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED], "answered"),
        ([grpc.StatusCode.DATA_LOSS] * 2, "backend_failed"),
        ([grpc.StatusCode.INTERNAL], "backend_failed"),
    ],
)
def test_a_day_is_sent_again_where_the_contract_allows_it(
    tmp_path: Path, codes: list[grpc.StatusCode], expected: str
) -> None:
    with StumblingBackend(*codes) as backend:
        execute(RunRequest(out=tmp_path / "run", config=config(backend, "extractive")))
        assert not backend.codes
    day_records = ingests(tmp_path / "run")
    assert [r.code for r in day_records[: len(codes)]] == [code.name for code in codes]
    assert all(r.duration_ns > 0 for r in day_records)
    first = asked(tmp_path / "run")[0].ego
    assert {r.status for r in asked(tmp_path / "run") if r.ego == first} == {expected}


def test_a_brief_failure_of_the_model_server_loses_no_day(tmp_path: Path) -> None:
    failures = iter([True])

    def script(body: object) -> Script:
        return Script(status=500) if EXTRACT in str(body) and next(failures, False) else Script()

    with ExtractingBackend() as backend, ModelServer(script) as reader:
        outcome = execute(RunRequest(out=tmp_path / "run", config=config(backend, reader.base_url)))
    assert outcome.reason == "completed"
    assert {r.status for r in asked(tmp_path / "run")} == {"answered"}
    assert [r.code for r in ingests(tmp_path / "run")].count("UNAVAILABLE") == 1


@pytest.mark.parametrize(("patient", "anew"), [(False, 1), (True, 0)])
def test_days_are_ingested_again_if_a_model_call_failed_and_was_not_retried(
    tmp_path: Path, patient: bool, anew: int
) -> None:
    """They go into a fresh namespace, from the first day on: what was ingested without the model is incomplete."""
    calls = iter(range(100))

    def script(body: object) -> Script:
        second = EXTRACT in str(body) and next(calls) == 1
        return Script(status=500) if second else Script()

    out = tmp_path / "run"
    with CarelessBackend(patient=patient) as backend, ModelServer(script) as reader:
        outcome = execute(RunRequest(out=out, config=config(backend, reader.base_url)))
    assert outcome.reason == "completed"
    assert {r.status for r in asked(out)} == {"answered"}
    attempts = [r.attempt for r in read_records(out, "namespace") if isinstance(r, NamespaceOpened)]
    assert attempts.count(1) == anew
    problems = [r for r in read_records(out, "problem") if isinstance(r, Problem) and "came in although" in r.message]
    assert [r.cause for r in problems] == ["infra"] * anew


def test_a_model_that_fails_in_every_ingest_ends_the_run(tmp_path: Path) -> None:
    def script(body: object) -> Script:
        return Script(status=500) if EXTRACT in str(body) else Script()

    out = tmp_path / "run"
    with (
        CarelessBackend(patient=False) as backend,
        ModelServer(script) as reader,
        pytest.raises(InfraError, match="day 0 came in although model"),
    ):
        execute(RunRequest(out=out, config=config(backend, reader.base_url)))
    assert not asked(out)


def test_a_model_server_that_keeps_failing_ends_the_run_without_blaming_the_backend(tmp_path: Path) -> None:
    """No question is charged to the backend, and the run can be resumed once the server works."""
    broken = True

    def script(body: object) -> Script:
        return Script(status=500) if broken and EXTRACT in str(body) else Script()

    out = tmp_path / "run"
    with ExtractingBackend() as backend, ModelServer(script) as reader:
        with pytest.raises(InfraError, match=r"reader .* failed while day 0"):
            execute(RunRequest(out=out, config=config(backend, reader.base_url)))
        assert not asked(out)
        broken = False
        assert execute(RunRequest(out=out, resume=True)).reason == "completed"
    assert {r.status for r in asked(out)} == {"answered"}


def test_an_open_question_is_not_asked_of_a_backend_ahead_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness ends after the backend committed the next day and before that is logged.

    Asking then would let the backend answer from a later day.
    """
    broken = True

    def script(body: object) -> Script:
        return Script(status=500) if broken and "spaniel" in str(body) else Script()

    append = LogWriter.append

    def interrupted(log: LogWriter, *records: object) -> None:
        if any(isinstance(r, IngestDone) and r.day == 1 for r in records):
            raise KeyboardInterrupt
        append(log, *records)  # type: ignore[arg-type]

    out = tmp_path / "run"
    with ModelServer(script) as reader:
        values = {
            "dataset": EXAMPLE,
            "backends": ["bm25"],
            "readers": [{"spec": reader.base_url}],
            "max_context_tokens": 64,
            "infra_retries": 0,
            "floor_samples": 0,
        }
        with monkeypatch.context() as patch:
            patch.setattr(LogWriter, "append", interrupted)
            assert execute(RunRequest(out=out, config=parse_config(values, "test"))).reason == "interrupted"
        left_open = {r.instance_id for r in asked(out) if r.status == "infra_failed"}
        assert left_open
        broken = False
        assert execute(RunRequest(out=out, resume=True)).reason == "completed"
    assert {r.status for r in asked(out) if r.instance_id in left_open} == {"infra_failed", "answered"}
