"""Tests wishes that a model reads at Ingest: typed, requested twice at most, else left to the rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest
from memarena.gateway import CallContext, Gateway
from memarena_backend import Capability, ServeError
from memarena_backend_bm25 import Bm25Memory
from memarena_backend_gated import GatedMemory
from memarena_backend_gated.__main__ import make_memory
from memarena_backend_gated.settings import Settings
from memarena_backend_gated.store import STORE_NAME, RecordStore, read_store
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.gated.test_gate import GRETA, PAULO, shown
from tests.backends.support import Served, code_of, make_day, make_session, message_of, serve
from tests.support.model_script import Script
from tests.support.model_server import ModelServer

HINT = ["Hi!", "I sold my sailboat for 9400 euros.", "Oh!", "Paulo and numbers of mine do not mix."]
PLAIN = ["Hi!", "I sold my sailboat for 9400 euros. Keep that from Paulo."]
WISH = {"turn": 4, "effect": "withhold", "names": ["Paulo"], "topic": "sailboat euros", "valid_until": ""}


def reply(*wishes: dict[str, object]) -> Script:
    return Script(json.dumps({"wishes": wishes}), prompt_tokens=90, completion_tokens=10)


NOT_JSON, NO_SUCH_TURN = Script("Paulo must not know."), reply(WISH | {"turn": 40})
NO_SUCH_EFFECT, CUT = reply(WISH | {"effect": "hush"}), Script('{"wishes": [{"turn": 4, "eff')
REFUSED = Script(status=400, message="the prompt is too long")


class Replies:
    """Answers with one script after the other."""

    def __init__(self) -> None:
        self.left: list[Script] = []

    def __call__(self, body: object) -> Script:
        return self.left.pop(0)


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def models(replies: Replies) -> Iterator[pb.ModelAccess]:
    with ModelServer(replies) as server, Gateway([server.upstream(name="tiny")], lambda _: None) as gateway:
        yield pb.ModelAccess(
            base_url=gateway.base_url,
            token=gateway.grant(CallContext("ingest")),
            models=[pb.Model(name="tiny", role=pb.MODEL_ROLE_EXTRACTOR)],
        )


def gate(folder: Path) -> GatedMemory:
    return GatedMemory(Bm25Memory(), RecordStore(folder / STORE_NAME, "model"), Settings(extraction="model"))


def ingest(served: Served, talk: Sequence[str], models: pb.ModelAccess | None) -> dict[str, int]:
    """Notices of the gate by code, without the time that it took."""
    day = make_day("n1", 0, [make_session("s1", talk)])
    if models is not None:
        day[0].header.model_access.CopyFrom(models)
    notices = {notice.code: notice.count for notice in served.ingest(day).notices}
    return {code: count for code, count in notices.items() if code != "gate_model_ms"}


def test_a_wish_that_the_model_states_decides_and_outlives_a_restart(
    tmp_path: Path, replies: Replies, models: pb.ModelAccess
) -> None:
    replies.left = [reply(WISH)]
    with serve(gate(tmp_path), tmp_path) as served:
        described = served.stub.Describe(pb.DescribeRequest(), timeout=20.0)
        assert described.version.endswith("wishes read by a model")
        assert pb.Capability.Value(f"CAPABILITY_{Capability.FORGET.name}") not in described.capabilities
        assert ingest(served, HINT, models) == {"gate_records": 1, "gate_model_calls": 1, "gate_model_tokens": 100}
        assert ["9400" in shown(served, asker) for asker in (PAULO, GRETA)] == [False, True]
    with serve(gate(tmp_path), tmp_path) as served:
        assert ["9400" in shown(served, asker) for asker in (PAULO, GRETA)] == [False, True]
    (stored,) = read_store(tmp_path / STORE_NAME)
    assert [record.origin for record in stored.records] == ["model"]


@pytest.mark.parametrize(("before", "after"), [("rules", "model"), ("model", "rules")])
def test_records_of_another_extraction_are_refused(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as there are any: an empty store follows the setting."""
    path = tmp_path / STORE_NAME
    monkeypatch.setenv("GATED_EXTRACTION", after)
    store = RecordStore(path, before)
    store.put("n1", 0, [], {})
    store.close()
    line = f"{path}: holds records read by {before}, but GATED_EXTRACTION is {after}: expected {before}, or another"
    with pytest.raises(ServeError) as refused:
        make_memory(tmp_path)
    assert str(refused.value) == f"{line} data folder"
    store = RecordStore(path, before)
    store.remove("n1")
    store.close()
    make_memory(tmp_path).close()


@pytest.mark.parametrize("bad", [NOT_JSON, NO_SUCH_TURN, NO_SUCH_EFFECT, CUT])
def test_a_reply_of_no_use_is_asked_for_again_and_then_left_to_the_rules(
    bad: Script, tmp_path: Path, replies: Replies, models: pb.ModelAccess
) -> None:
    replies.left = [bad, reply(WISH), bad, bad]
    for number, (talk, rules) in enumerate(((HINT, 0), (PLAIN, 1))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve(gate(folder), folder) as served:
            notices = ingest(served, talk, models)
            assert notices.pop("gate_model_tokens") > 0
            expected = {"gate_records": 1, "gate_model_calls": 2, "gate_model_retried": 1}
            assert notices == expected | ({"gate_model_to_rules": 1} if rules else {})
            assert ["9400" in shown(served, asker) for asker in (PAULO, GRETA)] == [False, True]
    assert replies.left == []


def test_a_model_that_says_nothing_or_refuses_loses_no_wish_of_the_rules(
    tmp_path: Path, replies: Replies, models: pb.ModelAccess
) -> None:
    replies.left = [reply(), REFUSED]
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve(gate(folder), folder) as served:
            notices = ingest(served, PLAIN, models)
            assert notices.get("gate_model_to_rules", 0) == number
            assert "gate_model_retried" not in notices
            assert "9400" not in shown(served, PAULO)


@pytest.mark.parametrize(
    ("offered", "code", "line"),
    [
        (True, grpc.StatusCode.UNAVAILABLE, "the chat model tiny failed"),
        (False, grpc.StatusCode.INVALID_ARGUMENT, "header.model_access: is required"),
    ],
)
def test_without_a_model_no_day_is_taken_in(
    offered: bool, code: grpc.StatusCode, line: str, tmp_path: Path, replies: Replies, models: pb.ModelAccess
) -> None:
    replies.left = [Script(status=500)] * 8
    with serve(gate(tmp_path), tmp_path) as served:
        with pytest.raises(grpc.RpcError) as failed:
            ingest(served, PLAIN, models if offered else None)
        assert code_of(failed.value) is code
        assert line in message_of(failed.value)
        with pytest.raises(grpc.RpcError) as empty:
            served.find("n1", "sailboat", 0)
        assert code_of(empty.value) is grpc.StatusCode.NOT_FOUND
