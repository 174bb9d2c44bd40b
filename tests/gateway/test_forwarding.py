"""Tests what the gateway forwards between caller and model server, and what it records of a call."""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from memarena.gateway import CallContext, Gateway, GatewayError, Upstream

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from tests.gateway.conftest import Harness

    Make = Callable[..., Harness]

MESSAGES = [{"role": "user", "content": "Where?"}]


def test_a_complete_reply_is_forwarded_unchanged_and_recorded(harness: Harness) -> None:
    harness.reader.script = Script(cached_tokens=3, timings={"prompt_ms": 12.5, "predicted_ms": 4.0})
    reply, record = harness.one_chat()
    assert reply.status == 200
    assert reply.json()["choices"][0]["message"]["content"] == Script().text
    assert (record.phase, record.cell_id, record.instance_id, record.ego, record.day) == (
        "answer", "cell", "instance", "ego", 3,
    )  # fmt: skip
    assert (record.route, record.model, record.stream) == ("/v1/chat/completions", "null-reader", False)
    assert (record.status, record.error, record.upstream_failed) == (200, "", False)
    assert (record.prompt_tokens, record.cached_tokens, record.completion_tokens) == (2, 3, 5)
    assert (record.server_prompt_ms, record.server_predicted_ms) == (12.5, 4.0)
    assert json.loads(record.prompt) == MESSAGES
    assert record.output == Script().text
    assert record.output_sha256 == hashlib.sha256(Script().text.encode()).hexdigest()
    assert record.prompt_sha256 == hashlib.sha256(record.prompt.encode()).hexdigest()
    assert record.first_content_ns is None, "the first token of a reply that comes whole cannot be seen"
    assert record.done_ns is not None


def test_a_stream_is_forwarded_and_its_times_are_in_order(harness: Harness) -> None:
    harness.reader.script = Script(delay_s=0.05, token_delay_s=0.01)
    reply, record = harness.one_chat(stream=True)
    assert reply.text() == Script().text
    assert reply.events()[-1] == "[DONE]"
    assert record.stream
    assert record.output == Script().text
    assert record.received_to_forwarded_ns is not None
    moments = [record.first_byte_ns, record.first_content_ns, record.last_content_ns, record.done_ns]
    assert None not in moments
    assert moments == sorted(moments, key=lambda moment: moment or 0)
    assert record.first_content_ns is not None
    assert record.last_content_ns is not None
    assert record.first_content_ns >= 50_000_000
    assert record.last_content_ns >= 90_000_000


def test_ttft_is_the_first_content_not_the_first_byte_nor_the_reasoning(make_harness: Make) -> None:
    """A role chunk and separate reasoning come before the answer and do not count."""

    class Slow(ModelServer):
        """Sends role and reasoning at once, and the answer later."""

    harness = make_harness(Slow(Script(reasoning=("let me", " see"), tokens=("", "Tuesday"), token_delay_s=0.08)))
    reply, record = harness.one_chat(stream=True)
    assert record.first_byte_ns is not None
    assert record.first_reasoning_ns is not None
    assert record.first_content_ns is not None
    # The server waits 80 ms; the first of the two may be forwarded late on a busy machine.
    assert record.first_content_ns - record.first_byte_ns >= 20_000_000
    assert record.first_content_ns - record.first_reasoning_ns >= 20_000_000
    assert (record.output, record.reasoning) == ("Tuesday", "let me see")
    assert any("reasoning_content" in c["delta"] for e in reply.events()[:-1] for c in e["choices"])


def test_usage_of_a_stream_is_recorded_even_if_the_caller_did_not_request_it(harness: Harness) -> None:
    reply, record = harness.one_chat(stream=True)
    assert (record.prompt_tokens, record.completion_tokens) == (2, 5)
    assert all("usage" not in event for event in reply.events()[:-1])
    assert all(event["choices"] for event in reply.events()[:-1])
    assert harness.reader.received[-1].body["stream_options"] == {"include_usage": True}


def test_a_caller_that_requests_usage_gets_it(harness: Harness) -> None:
    reply, record = harness.one_chat(stream=True, stream_options={"include_usage": True})
    assert reply.events()[-2]["usage"]["completion_tokens"] == 5
    assert record.completion_tokens == 5


def test_unreported_usage_stays_unknown(harness: Harness) -> None:
    harness.reader.script = Script(reports_usage=False)
    for stream in (False, True):
        _, record = harness.one_chat(stream=stream)
        assert (record.prompt_tokens, record.cached_tokens, record.completion_tokens) == (None, None, None)


def test_null_token_details_are_unknown_not_zero(harness: Harness) -> None:
    harness.reader.script = Script(cached_tokens=None)
    _, record = harness.one_chat(stream=True)
    assert record.prompt_tokens == 2
    assert record.cached_tokens is None


def test_chunks_of_a_stream_are_not_delayed(harness: Harness) -> None:
    harness.reader.script = Script(tokens=("first", "second"), token_delay_s=1.0)
    token = harness.gateway.grant(CallContext("answer"))
    connection = http.client.HTTPConnection("127.0.0.1", harness.port, timeout=10)
    body = json.dumps({"model": harness.reader.model, "messages": MESSAGES, "stream": True})
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {token}"})
    reply = connection.getresponse()
    while b"first" not in reply.readline():
        pass
    assert time.monotonic() - began < 0.9
    assert b"second" in reply.read()
    connection.close()
    harness.gateway.revoke(token)


def test_the_model_is_renamed_and_configured_fields_override_the_callers(make_harness: Make) -> None:
    reader = ModelServer(model="served-name")
    upstream = dataclasses.replace(
        reader.upstream(name="offered"),
        extra_body={"cache_prompt": False, "chat_template_kwargs": {"date": "fixed"}},
        api_key="secret-key",
    )
    harness = make_harness(reader, upstreams=[upstream])
    reply, record = harness.one_chat(
        model="offered", cache_prompt=True, chat_template_kwargs={"enable_thinking": False, "date": "caller's"}, seed=5
    )
    assert reply.status == 200
    request = reader.received[-1]
    assert request.body["model"] == "served-name"
    assert request.body["cache_prompt"] is False
    assert request.body["chat_template_kwargs"] == {"enable_thinking": False, "date": "fixed"}
    assert request.body["seed"] == 5
    assert request.headers["Authorization"] == "Bearer secret-key"
    assert record.model == "offered"
    assert "secret-key" not in record.model_dump_json()
    assert "secret-key" not in repr(upstream)


def test_plain_completions_are_forwarded_too(harness: Harness) -> None:
    token = harness.gateway.grant(CallContext("ingest"))
    for stream in (False, True):
        body = {"model": harness.reader.model, "prompt": "Once", "stream": stream}
        reply = harness.call("/v1/completions", body, token)
        assert reply.status == 200
    calls = harness.gateway.revoke(token)
    assert [call.output for call in calls] == [Script().text] * 2
    assert [json.loads(call.prompt) for call in calls] == ["Once"] * 2
    assert calls[0].first_content_ns is None
    assert calls[1].first_content_ns is not None


def test_embeddings_are_forwarded_and_their_vectors_are_not_recorded_as_text(make_harness: Make) -> None:
    reader = ModelServer(model="embedder")
    harness = make_harness(reader, upstreams=[reader.upstream(role="embedder")])
    token = harness.gateway.grant(CallContext("search"))
    reply = harness.call("/v1/embeddings", {"model": "embedder", "input": ["a", "b"]}, token)
    (record,) = harness.gateway.revoke(token)
    assert len(reply.json()["data"]) == 2
    assert (record.phase, record.prompt_tokens, record.completion_tokens, record.output) == ("search", 2, None, "")
    assert record.output_sha256 == hashlib.sha256(reply.body).hexdigest()
    assert "stream_options" not in reader.received[-1].body


def test_the_models_route_lists_the_callable_models(make_harness: Make) -> None:
    reader = ModelServer()
    harness = make_harness(reader, upstreams=[reader.upstream(name="a"), reader.upstream(name="b", role="embedder")])
    token = harness.gateway.grant(CallContext("answer"))
    models = harness.call("/v1/models", None, token, "GET").json()
    assert [model["id"] for model in models["data"]] == ["a", "b"]
    assert harness.gateway.revoke(token)[0].route == "/v1/models"


def test_texts_are_recorded_only_if_the_run_says_so(make_harness: Make) -> None:
    harness = make_harness(keep_texts=False)
    harness.reader.script = Script(reasoning=("hm",))
    _, record = harness.one_chat(stream=True)
    assert (record.prompt, record.output, record.reasoning) == ("", "", "")
    assert len(record.prompt_sha256) == len(record.output_sha256) == 64


def test_lone_surrogates_do_not_break_a_record(harness: Harness) -> None:
    reply, record = harness.one_chat(messages=[{"role": "user", "content": "\ud800"}])
    assert reply.status == 200
    assert record.model_dump_json()


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [("plain", [1, 2, 0]), ("llama.cpp", [1, 3, 0]), ("sglang", [1, 3, 0])],
)
def test_tokens_are_counted_in_one_call_upstream(make_harness: Make, dialect: str, expected: list[int]) -> None:
    harness = make_harness(ModelServer(dialect=dialect))  # type: ignore[arg-type]
    token = harness.gateway.grant(CallContext("answer"))
    body = {"model": harness.reader.model, "texts": ["one", "a b c d"[:5], ""]}
    assert harness.call("/v1/tokenize", body, token).json() == {"counts": expected}
    (record,) = harness.gateway.revoke(token)
    assert (record.route, record.status, record.prompt, record.prompt_tokens) == ("/v1/tokenize", 200, "", None)
    assert len(harness.reader.received) == (0 if dialect == "plain" else 1)


def test_counting_is_refused_for_a_model_whose_server_cannot_count(make_harness: Make) -> None:
    reader = ModelServer()
    harness = make_harness(reader, upstreams=[dataclasses.replace(reader.upstream(), tokenizer="none")])
    token = harness.gateway.grant(CallContext("answer"))
    reply = harness.call("/v1/tokenize", {"model": reader.model, "texts": ["x"]}, token)
    assert (reply.status, reply.json()["error"]["code"]) == (404, "no_tokenizer")
    harness.gateway.revoke(token)


def test_a_tokenizer_that_loses_texts_is_an_infrastructure_failure(make_harness: Make) -> None:
    reader = ModelServer(dialect="sglang")
    harness = make_harness(reader, upstreams=[dataclasses.replace(reader.upstream(), tokenizer="llama.cpp")])
    token = harness.gateway.grant(CallContext("answer"))
    reply = harness.call("/v1/tokenize", {"model": reader.model, "texts": ["x"]}, token)
    (record,) = harness.gateway.revoke(token)
    assert reply.status == record.status == 502
    assert record.upstream_failed


def test_a_restarted_model_server_is_called_at_its_new_address(make_harness: Make) -> None:
    harness = make_harness()
    with ModelServer(Script(tokens=("from the new one",))) as restarted:
        harness.reader.stop()
        harness.gateway.replace_upstream(restarted.upstream())
        _, record = harness.one_chat(stream=True)
    assert record.output == "from the new one"
    with pytest.raises(GatewayError, match="no model other"):
        harness.gateway.replace_upstream(Upstream("other", "http://127.0.0.1:1/v1", "other"))


def test_a_gateway_on_all_addresses_is_used_by_loopback_and_advertises_its_url() -> None:
    with ModelServer() as reader:
        everywhere = Gateway(
            [reader.upstream()], lambda call: None, host="0.0.0.0", advertised_url="http://harness:1/v1"
        )
        with everywhere as gateway:
            assert gateway.base_url.startswith("http://127.0.0.1:")
            assert gateway.advertised_url == "http://harness:1/v1"
    assert Gateway([], lambda call: None).advertised_url.startswith("http://127.0.0.1:")
