"""Tests the gateway's tokens: each is valid for one RPC and revoked when the RPC returns."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest
from memarena.gateway import CallContext, GatewayError

from tests.support.model_script import Script

if TYPE_CHECKING:
    from tests.gateway.conftest import Harness, Reply

    Make = Callable[..., Harness]


def in_background(call: Callable[[], Reply]) -> tuple[threading.Thread, list[Reply]]:
    """Run a call in a thread; its reply is appended to the list, which stays empty if the connection is cut."""
    replies: list[Reply] = []

    def run() -> None:
        try:
            replies.append(call())
        except (OSError, http.client.HTTPException):
            return

    thread = threading.Thread(target=run)
    thread.start()
    return thread, replies


def test_calls_after_the_rpc_returned_are_refused_and_recorded_as_late(harness: Harness) -> None:
    token = harness.gateway.grant(CallContext("ingest", "cell", None, "ana", 4))
    assert harness.chat(token).status == 200
    assert len(harness.gateway.revoke(token)) == 1
    reply = harness.chat(token)
    assert reply.status == 403
    assert reply.json()["error"]["code"] == "token_revoked"
    late = harness.recorded(2)
    assert (late.phase, late.status, late.cell_id, late.ego, late.day) == ("after_return", 403, "cell", "ana", 4)
    assert len(harness.reader.received) == 1
    assert harness.gateway.revoke(token) == ()


def test_tokens_differ_and_each_has_its_own_calls_in_order(harness: Harness) -> None:
    first, second = (harness.gateway.grant(CallContext("answer", instance_id=name)) for name in "ab")
    assert first != second
    for token, count in ((first, 3), (second, 1), (first, 1)):
        for _ in range(count):
            harness.chat(token)
    calls = harness.gateway.revoke(first)
    assert [call.instance_id for call in calls] == ["a"] * 4
    assert [call.started_mono_ns for call in calls] == sorted(call.started_mono_ns for call in calls)
    assert len({call.call_id for call in harness.records}) == 5
    assert len(harness.gateway.revoke(second)) == 1


def test_revoking_waits_for_pending_calls(harness: Harness) -> None:
    harness.reader.script = Script(delay_s=0.3)
    token = harness.gateway.grant(CallContext("answer"))
    thread, replies = in_background(lambda: harness.chat(token, stream=True))
    while not harness.reader.received:
        time.sleep(0.005)
    (record,) = harness.gateway.revoke(token)
    thread.join()
    assert (record.status, record.phase, record.error) == (200, "answer", "")
    assert replies[0].text() == Script().text


def test_revoking_cuts_off_calls_that_do_not_end(harness: Harness) -> None:
    harness.reader.script = Script(fault="stall")
    token = harness.gateway.grant(CallContext("answer"))
    thread, _ = in_background(lambda: harness.chat(token, stream=True))
    while not harness.reader.received:
        time.sleep(0.005)
    began = time.monotonic()
    (record,) = harness.gateway.revoke(token, wait_s=0.2)
    assert time.monotonic() - began < 3
    assert record.error == "cut off: still under way after its RPC had returned"
    assert not record.upstream_failed
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_a_token_that_was_never_granted_cannot_be_revoked(harness: Harness) -> None:
    with pytest.raises(GatewayError, match="never granted"):
        harness.gateway.revoke("x")


def test_tokens_come_from_the_given_factory(make_harness: Make) -> None:
    harness = make_harness(token_factory=lambda: "always-the-same")
    assert harness.gateway.grant(CallContext("answer")) == "always-the-same"
    with pytest.raises(GatewayError, match="same token twice"):
        harness.gateway.grant(CallContext("answer"))


def test_many_callers_at_once_are_kept_apart(harness: Harness) -> None:
    tokens = [harness.gateway.grant(CallContext("answer", instance_id=str(n))) for n in range(16)]
    threads = [in_background(partial(harness.chat, token, stream=True))[0] for token in tokens]
    for thread in threads:
        thread.join()
    for n, token in enumerate(tokens):
        assert [(call.instance_id, call.output) for call in harness.gateway.revoke(token)] == [(str(n), Script().text)]
