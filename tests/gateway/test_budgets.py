"""Tests budgets: what one RPC may spend on models, and the 429 reply when it is spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from memarena.gateway import Budget, CallContext

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from tests.gateway.conftest import Harness

    MakeHarness = Callable[..., Harness]


def test_calls_beyond_the_budget_get_429_and_never_reach_the_model(make_harness: MakeHarness) -> None:
    harness = make_harness(budgets={"ingest": Budget(calls=2)})
    token = harness.gateway.grant(CallContext("ingest", "cell", None, "ana", 4))
    assert [harness.chat(token).status for _ in range(4)] == [200, 200, 429, 429]
    assert len(harness.reader.received) == 2
    refused = harness.recorded(4)
    assert (refused.phase, refused.refusal, refused.cell_id, refused.day) == ("refused", "budget_spent", "cell", 4)
    assert not refused.upstream_failed


def test_the_error_states_the_limit(make_harness: MakeHarness) -> None:
    harness = make_harness(budgets={"ingest": Budget(calls=0)})
    error = harness.chat(harness.gateway.grant(CallContext("ingest"))).json()["error"]
    assert error["code"] == "budget_spent"
    assert error["message"] == "the budget of 0 model calls per ingest is spent"


def test_each_rpc_has_its_own_budget_and_other_phases_have_none(make_harness: MakeHarness) -> None:
    harness = make_harness(budgets={"ingest": Budget(calls=1)})
    for _ in range(2):
        token = harness.gateway.grant(CallContext("ingest"))
        assert [harness.chat(token).status for _ in range(2)] == [200, 429]
        harness.gateway.revoke(token)
    answering = harness.gateway.grant(CallContext("answer"))
    assert {harness.chat(answering).status for _ in range(4)} == {200}


def test_the_call_that_crosses_the_token_budget_still_succeeds_and_the_next_is_refused(
    make_harness: MakeHarness,
) -> None:
    """The number of a call's tokens is known only after it."""
    script = Script(tokens=("a", "b", "c"), prompt_tokens=40)
    harness = make_harness(ModelServer(script), budgets={"search": Budget(tokens=80)})
    token = harness.gateway.grant(CallContext("search"))
    replies = []
    for count in range(1, 4):
        replies.append(harness.chat(token))
        harness.recorded(count)
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert "80 tokens per search is spent (86 so far)" in replies[-1].json()["error"]["message"]


def test_counting_tokens_and_listing_models_cost_nothing(make_harness: MakeHarness) -> None:
    harness = make_harness(budgets={"ingest": Budget(calls=1)})
    token = harness.gateway.grant(CallContext("ingest"))
    for _ in range(3):
        body = {"model": harness.reader.model, "texts": ["one two"]}
        assert harness.call("/v1/tokenize", body, token).status == 200
        assert harness.call("/v1/models", None, token, "GET").status == 200
    assert harness.chat(token).status == 200


@pytest.mark.parametrize("route", ["/v1/completions", "/v1/embeddings"])
def test_every_route_that_calls_a_model_counts(make_harness: MakeHarness, route: str) -> None:
    reader = ModelServer()
    upstream = reader.upstream(role="embedder") if route.endswith("embeddings") else reader.upstream()
    harness = make_harness(reader, upstreams=[upstream], budgets={"ingest": Budget(calls=1)})
    token = harness.gateway.grant(CallContext("ingest"))
    body = {"model": reader.model, "prompt": "x", "input": ["x"]}
    assert [harness.call(route, body, token).status for _ in range(2)] == [200, 429]


def test_unreported_tokens_count_at_one_per_byte(make_harness: MakeHarness) -> None:
    """The most that they can be: a client that hangs up early, or a server without usage, has no unlimited budget."""
    reader = ModelServer(Script(tokens=("abc", "defg"), reports_usage=False))
    harness = make_harness(reader, budgets={"search": Budget(tokens=1)})
    token = harness.gateway.grant(CallContext("search"))
    assert harness.chat(token).status == 200
    record = harness.recorded(1)
    assert (record.prompt_tokens, record.completion_tokens) == (None, None)
    message = harness.chat(token).json()["error"]["message"]
    prompt = json.dumps(json.loads(record.prompt), ensure_ascii=False)
    assert f"({len(prompt.encode()) + len('abcdefg')} so far)" in message


def test_a_failed_call_does_not_count_against_the_budget(make_harness: MakeHarness) -> None:
    reader = ModelServer(Script(status=500))
    harness = make_harness(reader, budgets={"search": Budget(tokens=1)})
    token = harness.gateway.grant(CallContext("search"))
    assert [harness.chat(token).status for _ in range(2)] == [502, 502]
