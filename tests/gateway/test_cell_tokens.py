"""Tests tokens of a whole cell, for backends whose own server is configured only once (SPEC.md MOD-8).

Usually a token belongs to one RPC, so that every model call is attributed to it. A server that is configured once
cannot receive a token for each.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from memarena.gateway import CallContext, GatewayError

from tests.support.model_script import Script

if TYPE_CHECKING:
    from tests.gateway.conftest import Harness

TOKEN = "a-token-for-the-whole-cell"


def test_calls_are_attributed_to_the_pending_rpc_and_marked_as_inferred(harness: Harness) -> None:
    assert harness.gateway.open_cell(TOKEN, "cell", {}) == TOKEN
    harness.gateway.begin(TOKEN, CallContext("ingest", "cell", None, "ana", 4))
    assert harness.chat(TOKEN).status == 200
    (first,) = harness.gateway.revoke(TOKEN)
    harness.gateway.begin(TOKEN, CallContext("search", "cell", "q1", "ana", 4))
    assert harness.chat(TOKEN).status == 200
    (second,) = harness.gateway.revoke(TOKEN)
    assert (first.phase, first.day, first.instance_id, first.inferred) == ("ingest", 4, None, True)
    assert (second.phase, second.instance_id, second.inferred) == ("search", "q1", True)


def test_a_token_of_one_rpc_is_not_inferred(harness: Harness) -> None:
    _, record = harness.one_chat()
    assert not record.inferred


def test_calls_are_probes_before_the_first_rpc_and_refused_between_two(harness: Harness) -> None:
    harness.gateway.open_cell(TOKEN, "cell", {})
    assert harness.chat(TOKEN).status == 200
    assert harness.recorded(1).phase == "probe"
    harness.gateway.begin(TOKEN, CallContext("ingest", "cell", None, "ana", 0))
    assert harness.gateway.revoke(TOKEN) == ()
    assert harness.chat(TOKEN).status == 403
    late = harness.recorded(2)
    assert (late.phase, late.inferred, late.day) == ("after_return", True, 0)
    harness.gateway.open_cell(TOKEN, "next", {})
    assert harness.chat(TOKEN).status == 200
    assert (harness.recorded(3).phase, harness.records[-1].cell_id) == ("probe", "next")


def test_models_have_role_names_for_a_server_configured_in_advance(harness: Harness) -> None:
    harness.gateway.open_cell(TOKEN, "cell", {"extractor": harness.reader.model})
    harness.gateway.begin(TOKEN, CallContext("ingest"))
    assert harness.chat(TOKEN, model="extractor").status == 200
    assert harness.chat(TOKEN, model="embedder").status == 404
    accepted, refused = harness.gateway.revoke(TOKEN)
    assert (accepted.model, accepted.status) == (harness.reader.model, 200)
    assert (refused.model, refused.status) == ("embedder", 404)
    assert harness.reader.received[-1].body["model"] == harness.reader.upstream().upstream_model
    # Only the cell's token knows these names.
    token = harness.gateway.grant(CallContext("answer"))
    assert harness.chat(token, model="extractor").status == 404


def test_an_rpc_begins_after_earlier_calls_have_ended(harness: Harness) -> None:
    harness.reader.script = Script(delay_s=0.3)
    harness.gateway.open_cell(TOKEN, "cell", {})
    early = threading.Thread(target=lambda: harness.chat(TOKEN))
    early.start()
    while not harness.reader.received:
        time.sleep(0.005)
    harness.gateway.begin(TOKEN, CallContext("ingest"))
    assert harness.recorded(1).phase == "probe"
    assert harness.gateway.revoke(TOKEN) == ()
    early.join()


def test_a_token_is_generated_by_default(harness: Harness) -> None:
    first, second = (harness.gateway.open_cell(None, "cell", {}) for _ in range(2))
    assert first != second
    assert harness.chat(first).status == 200


def test_tokens_of_cells_and_of_rpcs_are_kept_apart(harness: Harness) -> None:
    token = harness.gateway.grant(CallContext("answer"))
    with pytest.raises(GatewayError, match="that of an RPC already"):
        harness.gateway.open_cell(token, "cell", {})
    with pytest.raises(GatewayError, match="token of no cell"):
        harness.gateway.begin(token, CallContext("answer"))
