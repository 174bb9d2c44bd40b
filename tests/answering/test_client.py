"""Tests ReaderClient against scripted model servers over HTTP."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from memarena_answering import (
    Asker,
    Completion,
    Prompt,
    ReaderCallError,
    ReaderClient,
    ReadingPlan,
    TextDelta,
    build_prompt,
    count_by_bytes,
)

from tests.support.model_script import Fault, Script
from tests.support.model_server import ModelServer

PLAN = ReadingPlan("null-reader", 64, seed=7)


@pytest.fixture
def reader() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def client(reader: ModelServer) -> Iterator[ReaderClient]:
    client = ReaderClient(reader.base_url)
    yield client
    client.close()


def a_prompt() -> Prompt:
    return build_prompt([], "Where?", "2025-01-06", Asker("owner"), PLAN, count_by_bytes)


def test_deltas_come_first_and_the_completion_last(reader: ModelServer, client: ReaderClient) -> None:
    events = list(client.stream(a_prompt(), PLAN, "t", 10))
    deltas, completion = events[:-1], events[-1]
    assert deltas == [TextDelta(token) for token in Script().tokens]
    assert completion == Completion(Script().text, "stop", a_prompt().prompt_tokens, 5)


def test_the_request_has_the_fields_of_the_plan(reader: ModelServer, client: ReaderClient) -> None:
    list(client.stream(a_prompt(), PLAN, "one-token", 10))
    request = reader.received[-1]
    assert request.headers["Authorization"] == "Bearer one-token"
    assert request.body["messages"] == [{"role": m.role, "content": m.content} for m in a_prompt().messages]
    expected = {"model": "null-reader", "max_tokens": 64, "temperature": 0.0, "seed": 7, "stream": True}
    assert {key: request.body[key] for key in expected} == expected
    assert "chat_template_kwargs" not in request.body


@pytest.mark.parametrize(("thinking", "enabled"), [("on", True), ("off", False)])
def test_thinking_is_sent_only_if_the_plan_sets_it(
    reader: ModelServer, client: ReaderClient, thinking: str, enabled: bool
) -> None:
    plan = ReadingPlan("null-reader", 64, thinking=thinking)  # type: ignore[arg-type]
    list(client.stream(a_prompt(), plan, "t", 10))
    assert reader.received[-1].body["chat_template_kwargs"] == {"enable_thinking": enabled}


def test_separate_reasoning_is_not_part_of_the_text(reader: ModelServer, client: ReaderClient) -> None:
    reader.script = Script(reasoning=("hm", "well"), tokens=("yes",))
    assert next(iter(client.stream(a_prompt(), PLAN, "t", 10))) == TextDelta("yes")


def test_unreported_usage_stays_unknown(reader: ModelServer, client: ReaderClient) -> None:
    reader.script = Script(reports_usage=False, finish_reason="length")
    assert list(client.stream(a_prompt(), PLAN, "t", 10))[-1] == Completion(Script().text, "length", None, None)


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503])
def test_an_http_error_has_its_status_and_is_not_retried(
    reader: ModelServer, client: ReaderClient, status: int
) -> None:
    reader.script = Script(status=status, message="not today")
    with pytest.raises(ReaderCallError, match="not today") as caught:
        list(client.stream(a_prompt(), PLAN, "t", 10))
    assert caught.value.status == status
    assert len(reader.received) == 1


@pytest.mark.parametrize("fault", ["malformed", "error_event", "disconnect", "break", "cut"])
def test_a_broken_stream_is_an_error_and_not_a_short_answer(
    reader: ModelServer, client: ReaderClient, fault: Fault
) -> None:
    reader.script = Script(fault=fault)
    with pytest.raises(ReaderCallError) as caught:
        list(client.stream(a_prompt(), PLAN, "t", 10))
    assert caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("fault", ["stall", "endless"])
def test_the_timeout_covers_the_complete_reply(reader: ModelServer, client: ReaderClient, fault: Fault) -> None:
    reader.script = Script(fault=fault)
    began = time.monotonic()
    with pytest.raises(ReaderCallError, match=r"within 0\.3 s"):
        list(client.stream(a_prompt(), PLAN, "t", 0.3))
    assert time.monotonic() - began < 5


def test_an_unreachable_server_is_an_error(reader: ModelServer) -> None:
    reader.stop()
    client = ReaderClient(reader.base_url)
    with pytest.raises(ReaderCallError) as caught:
        list(client.stream(a_prompt(), PLAN, "t", 10))
    assert caught.value.status is None
    with pytest.raises(ReaderCallError):
        client.counter("t", "m")(["x"])
    client.close()


def test_counting_no_texts_makes_no_request(reader: ModelServer, client: ReaderClient) -> None:
    assert client.counter("t", "m")([]) == []
    assert reader.received == []


def test_one_client_serves_many_threads_each_with_its_own_token(reader: ModelServer, client: ReaderClient) -> None:
    replies: list[str] = []

    def ask(token: str) -> None:
        last = list(client.stream(a_prompt(), PLAN, token, 10))[-1]
        assert isinstance(last, Completion)
        replies.append(last.text)

    threads = [threading.Thread(target=ask, args=(f"token-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [Script().text] * 8
    assert {request.headers["Authorization"] for request in reader.received} == {f"Bearer token-{n}" for n in range(8)}


def test_importing_the_package_does_not_import_http() -> None:
    code = (
        "import sys, memarena_answering as m; assert 'httpcore2' not in sys.modules; "
        "m.preload(); assert 'httpcore2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
