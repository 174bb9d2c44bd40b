"""Tests Answer through the real gateway with a scripted reader: order of events, and failures that stay failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
from memarena.gateway import CallContext, Gateway
from memarena.log.records import GatewayCall
from memarena_backend import Capability
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import (
    Served,
    Verbatim,
    bad_fields,
    code_of,
    make_day,
    make_query,
    make_session,
    message_of,
    serve,
)
from tests.support.model_script import Script
from tests.support.model_server import ModelServer

INVALID = grpc.StatusCode.INVALID_ARGUMENT


@dataclass
class Reading:
    """A served memory that answers, with a reader behind a gateway."""

    served: Served
    gateway: Gateway
    reader: ModelServer
    calls: list[GatewayCall]

    def request(self, text: str = "boat", **reading: object) -> pb.AnswerRequest:
        token = self.gateway.grant(CallContext("answer"))
        access = pb.ModelAccess(
            base_url=self.gateway.base_url,
            token=token,
            models=[
                pb.Model(name="tiny", role=pb.MODEL_ROLE_READER, context_window_tokens=2048),
                pb.Model(name="embed", role=pb.MODEL_ROLE_EMBEDDER),
            ],
        )
        how = pb.Reading(model="tiny", max_tokens=64)
        how.MergeFrom(pb.Reading(**reading))  # type: ignore[arg-type]
        return pb.AnswerRequest(search=make_query("n1", text, 0, model_access=access), reading=how)

    def answer(self, request: pb.AnswerRequest, timeout_s: float = 20.0) -> list[pb.AnswerEvent]:
        return list(self.served.stub.Answer(request, timeout=timeout_s))


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    calls: list[GatewayCall] = []
    with (
        ModelServer() as reader,
        Gateway([reader.upstream(name="tiny")], calls.append) as gateway,
        serve(Verbatim(frozenset({Capability.ANSWER})), tmp_path) as served,
    ):
        served.ingest(make_day("n1", 0, [make_session("s1", ["the boat is blue", "a boat sank"])]))
        yield Reading(served, gateway, reader, calls)


def kinds(events: list[pb.AnswerEvent]) -> list[str | None]:
    return [event.WhichOneof("event") for event in events]


def test_items_come_first_then_text_deltas_then_the_complete_text(reading: Reading) -> None:
    events = reading.answer(reading.request())
    script = Script()
    assert kinds(events) == ["retrieved", *["text_delta"] * len(script.tokens), "completed"]
    retrieved, *deltas, last = events
    assert [item.text for item in retrieved.retrieved.items] == ["the boat is blue", "a boat sank"]
    assert tuple(delta.text_delta.text for delta in deltas) == script.tokens
    assert last.completed.text == script.text
    assert last.completed.finish_reason == pb.FINISH_REASON_STOP
    assert last.completed.usage.completion_tokens == len(script.tokens)
    assert last.completed.usage.prompt_tokens > 0


def test_the_readers_prompt_has_items_asker_and_instructions(reading: Reading) -> None:
    request = reading.request(max_tokens=33, temperature=0.5, seed=7, prompt_style=pb.PROMPT_STYLE_JSON_CONTEXT)
    request.search.requester.CopyFrom(
        pb.Requester(
            kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id="p", display_name="Omar", relationship="friend"
        )
    )
    reading.answer(request)
    body = reading.reader.received[-1].body
    assert (body["max_tokens"], body["temperature"], body["seed"], body["stream"]) == (33, 0.5, 7, True)
    prompt = str(body["messages"])
    for part in ("the boat is blue", "a boat sank", "Omar", "friend", "2025-01-02", "boat"):
        assert part in prompt
    assert '{"time"' in prompt


def test_the_token_of_the_request_is_used(reading: Reading) -> None:
    request = reading.request()
    reading.answer(request)
    (call,) = reading.gateway.revoke(request.search.model_access.token)
    assert (call.phase, call.status, call.model) == ("answer", 200, "tiny")


def test_a_context_above_the_window_is_fitted(reading: Reading) -> None:
    long = [f"boat {number} " + "word " * 200 for number in range(60)]
    reading.served.ingest(make_day("n1", 1, [make_session("s2", long, day=1)]))
    request = reading.request()
    request.search.as_of_day = 1
    assert kinds(reading.answer(request))[-1] == "completed"
    messages = reading.reader.received[-1].body["messages"]
    assert len(str(messages).encode()) / 4 < 2048


def test_a_truncated_reply_is_marked_and_missing_usage_stays_missing(reading: Reading) -> None:
    reading.reader.script = Script(finish_reason="length", reports_usage=False)
    last = reading.answer(reading.request())[-1].completed
    assert last.finish_reason == pb.FINISH_REASON_LENGTH
    assert not last.HasField("usage")


def test_an_empty_reply_of_the_reader_is_an_empty_answer_without_an_error(reading: Reading) -> None:
    reading.reader.script = Script(tokens=())
    events = reading.answer(reading.request())
    assert kinds(events) == ["retrieved", "completed"]
    assert events[-1].completed.text == ""


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script(status=500), grpc.StatusCode.UNAVAILABLE),
        (Script(status=503), grpc.StatusCode.UNAVAILABLE),
        (Script(fault="disconnect"), grpc.StatusCode.UNAVAILABLE),
        (Script(fault="break"), grpc.StatusCode.UNAVAILABLE),
        (Script(fault="cut"), grpc.StatusCode.UNAVAILABLE),
        (Script(fault="malformed"), grpc.StatusCode.UNAVAILABLE),
    ],
    ids=lambda value: getattr(value, "fault", ""),
)
def test_a_failed_reader_is_an_error_and_not_an_answer(reading: Reading, script: Script, code: grpc.StatusCode) -> None:
    reading.reader.script = script
    events: list[pb.AnswerEvent] = []
    with pytest.raises(grpc.RpcError) as caught:
        for event in reading.served.stub.Answer(reading.request(), timeout=20):
            events.append(event)
    assert code_of(caught.value) is code
    assert "the reader failed" in message_of(caught.value)
    assert kinds(events)[0] == "retrieved"
    assert "completed" not in kinds(events)


def test_a_call_that_the_gateway_refuses_is_an_internal_error(reading: Reading) -> None:
    request = reading.request()
    reading.gateway.revoke(request.search.model_access.token)
    with pytest.raises(grpc.RpcError) as caught:
        reading.answer(request)
    assert code_of(caught.value) is grpc.StatusCode.INTERNAL
    assert "403" in message_of(caught.value)


def test_an_unreachable_gateway_is_unavailable(reading: Reading) -> None:
    request = reading.request()
    request.search.model_access.base_url = "http://127.0.0.1:1/v1"
    with pytest.raises(grpc.RpcError) as caught:
        reading.answer(request)
    assert code_of(caught.value) is grpc.StatusCode.UNAVAILABLE


def test_the_deadline_of_the_call_bounds_the_reader(reading: Reading) -> None:
    reading.reader.script = Script(fault="stall")
    started = time.monotonic()
    with pytest.raises(grpc.RpcError) as caught:
        reading.answer(reading.request(), timeout_s=0.5)
    assert code_of(caught.value) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - started < 5
    reading.reader.script = Script()
    assert kinds(reading.answer(reading.request()))[-1] == "completed"


def test_a_cancelled_answer_ends_the_model_call_and_frees_the_namespace(reading: Reading) -> None:
    reading.reader.script = replace(Script(), fault="endless", token_delay_s=0.01)
    request = reading.request()
    stream = reading.served.stub.Answer(request, timeout=20)
    for event in stream:
        if event.WhichOneof("event") == "text_delta":
            break
    stream.cancel()
    reading.served.ingest(make_day("n1", 1))
    (call,) = reading.gateway.revoke(request.search.model_access.token)
    assert call.error == "the caller went away"


def test_the_next_day_can_be_ingested_while_the_reader_answers(reading: Reading) -> None:
    reading.reader.script = Script(delay_s=0.5)
    retrieved = threading.Event()
    events: list[pb.AnswerEvent] = []

    def ask() -> None:
        for event in reading.served.stub.Answer(reading.request(), timeout=20):
            events.append(event)
            retrieved.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert retrieved.wait(10)
    reading.served.ingest(make_day("n1", 1))
    assert kinds(events) == ["retrieved"]
    asking.join(20)
    assert kinds(events)[-1] == "completed"


def test_a_faulty_field_is_named_by_its_path_in_the_answer_request(reading: Reading) -> None:
    def without(path: str) -> pb.AnswerRequest:
        request = reading.request()
        target: object = request
        *inner, last = path.split(".")
        for name in inner:
            target = getattr(target, name)
        target.ClearField(last)  # type: ignore[attr-defined]
        return request

    for path in (
        "search",
        "reading",
        "reading.model",
        "reading.max_tokens",
        "search.model_access",
        "search.namespace",
        "search.text",
        "search.asked_at",
        "search.requester",
    ):
        with pytest.raises(grpc.RpcError) as caught:
            reading.answer(without(path))
        assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, [path])
    for field, request in (
        ("reading.model", reading.request(model="embed")),
        ("reading.model", reading.request(model="unknown")),
        ("reading.temperature", reading.request(temperature=-1.0)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            reading.answer(request)
        assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, [field])
    assert reading.calls == []


def test_values_of_a_later_version_count_as_unset(reading: Reading) -> None:
    for request in (reading.request(prompt_style=9), reading.request(thinking=9)):
        assert kinds(reading.answer(request))[-1] == "completed"
    assert len(reading.calls) == 2


def test_a_question_above_the_window_is_refused(reading: Reading) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        reading.answer(reading.request("boat " * 10_000))
    assert code_of(caught.value) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert message_of(caught.value).startswith("search.text: ")


def test_an_unknown_namespace_and_a_wrong_day_are_refused_as_in_search(reading: Reading) -> None:
    request = reading.request()
    request.search.namespace = "other"
    with pytest.raises(grpc.RpcError) as caught:
        reading.answer(request)
    assert code_of(caught.value) is grpc.StatusCode.NOT_FOUND
    request = reading.request()
    request.search.as_of_day = 1
    with pytest.raises(grpc.RpcError) as caught:
        reading.answer(request)
    assert code_of(caught.value) is grpc.StatusCode.FAILED_PRECONDITION


def test_a_memory_without_answer_is_unimplemented(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        list(served.stub.Answer(pb.AnswerRequest(), timeout=20))
    assert code_of(caught.value) is grpc.StatusCode.UNIMPLEMENTED
    described = served.stub.Describe(pb.DescribeRequest(), timeout=30)
    assert pb.CAPABILITY_ANSWER not in described.capabilities
