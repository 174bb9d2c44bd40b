"""Tests the variant mem0 over the contract: any reply of its models ends well, and a failed day leaves nothing."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import grpc
import pytest
from memarena_proto import memory_backend_pb2 as pb

from backends.mem0.tests.conftest import FOLDER, LACKING, Running, running
from backends.mem0.tests.scripted_extractor import conversation_of, reply_of
from tests.backends.own_environment import EMBEDDER, refused
from tests.backends.support import bad_fields, code_of, make_session, message_of
from tests.support.model_script import Body
from tests.support.model_server import ModelServer

if LACKING:
    pytest.skip(LACKING, allow_module_level=True)

REX, LUNA = "The dog of Maya Chen is called Rex", "The cat of Maya Chen is called Luna"
UNUSABLE = {"sessions_given": 1, "extraction_calls": 1, "extraction_unusable": 1, "extraction_empty": 1}


def told(session_id: str, text: str, day: int = 0) -> pb.Session:
    return make_session(session_id, [text, "I see."], day=day)


def test_a_fact_is_returned_with_its_session_and_time(extracting: Running) -> None:
    counts = extracting.ingest("fact", 0, told("s1", "My dog is called Rex."), told("s2", "Nice weather."))
    assert counts == {
        "sessions_given": 2,
        "extraction_calls": 2,
        "extraction_empty": 1,
        "memories_stored": 1,
    }
    (item,) = extracting.search("fact", "What is my dog called?", 0)
    assert (item.text, list(item.source_session_ids), item.derived) == (REX, ["s1"], True)
    assert item.time == "2025-01-01T09:00:00+00:00"


def test_the_prompt_equals_the_recorded_prompt_and_has_the_day_of_the_session(extracting: Running) -> None:
    extracting.ingest("prompt", 4, told("s1", "My dog is called Rex.", day=4))
    assert extracting.models.prompts[-1] == (FOLDER / "tests/recorded_prompt.txt").read_text(encoding="utf-8")
    assert "## Observation Date\n2025-01-05\n" in extracting.models.prompts[-1]


def test_every_model_request_has_the_token_of_its_call(extracting: Running) -> None:
    begin = len(extracting.models.authorizations)
    extracting.ingest("token", 0, told("s1", "My dog is called Rex."))
    assert set(extracting.models.authorizations[begin:]) == {f"Bearer {extracting.issued[-1]}"}
    begin = len(extracting.models.authorizations)
    extracting.search("token", "dog", 0)
    assert extracting.models.authorizations[begin:] == [f"Bearer {extracting.issued[-1]}"]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I have found nothing, sorry.",
        '{"memory": [{"id": "0", "text": "User\'s dog is ca',
        "x" * 1_000_000,
        json.dumps({"memory": [{"text": "x" * 1_000_000}]}),
        "[" * 60_000,
        '{"facts": ["User has a dog"]}',
        '{"memory": ["User has a dog"]}',
        '{"memory": [{"text": ["User has a dog"]}]}',
        '{"memory": [{"text": {"a": 1}}, {"text": "User has a dog"}]}',
        '{"memory": [{"text": "\\ud800"}]}',
        '{"memory": 5}',
    ],
    ids=["empty", "prose", "cut", "1MB", "1MB-json", "deep", "facts", "strings", "list", "object", "half", "number"],
)
def test_an_unusable_reply_is_counted_and_the_day_is_committed(
    extracting: Running, reply: str, request: pytest.FixtureRequest
) -> None:
    namespace = request.node.callspec.id
    extracting.models.script = lambda body: reply
    assert extracting.ingest(namespace, 0, told("s1", "My dog is called Rex.")) == UNUSABLE
    assert extracting.search(namespace, "dog", 0) == []


def test_a_rejected_prompt_counts_as_a_failed_session(extracting: Running) -> None:
    extracting.models.script = lambda body: 400
    counts = extracting.ingest("window", 0, told("s1", "My dog is called Rex."))
    assert counts == {
        "sessions_given": 1,
        "extraction_calls": 1,
        "extraction_empty": 1,
        "sessions_failed": 1,
    }


@pytest.mark.parametrize("status", [401, 429, 500, 502])
def test_a_failing_model_ends_the_day_and_leaves_nothing_of_it(extracting: Running, status: int) -> None:
    namespace = f"fails-{status}"

    def fail_on_the_second(body: Body) -> str | int:
        return status if "Luna" in conversation_of(body) else reply_of(body)

    extracting.models.script = fail_on_the_second
    day = (told("s1", "My dog is called Rex."), told("s2", "My cat is called Luna."))
    error = refused(lambda: extracting.ingest(namespace, 0, *day))
    assert code_of(error) is grpc.StatusCode.UNAVAILABLE
    assert code_of(refused(lambda: extracting.search(namespace, "dog", 0))) is grpc.StatusCode.NOT_FOUND
    extracting.models.script = reply_of
    assert extracting.ingest(namespace, 0, *day)["memories_stored"] == 2


def test_a_failing_embedder_ends_the_day_although_mem0_would_go_on(extracting: Running) -> None:
    def fail_for_memories(texts: list[str]) -> None:
        extracting.models.embedding_status = 503 if texts == [REX] else 200

    extracting.ingest("embedder", 0, told("s1", "My cat is called Luna."))
    extracting.models.before_embedding = fail_for_memories
    calls = len(extracting.models.authorizations)
    error = refused(lambda: extracting.ingest("embedder", 1, told("s2", "My dog is called Rex.", day=1)))
    assert code_of(error) is grpc.StatusCode.UNAVAILABLE
    assert EMBEDDER.name in message_of(error)
    assert len(extracting.models.authorizations) - calls == 3, "no model is asked again after a failure"
    assert extracting.texts("embedder", "dog cat called", 0) == [LUNA]


def test_a_deadline_during_an_extraction_leaves_nothing_of_the_day(extracting: Running) -> None:
    go_on = threading.Event()
    extracting.models.before_chat = lambda: go_on.wait(20)
    error = refused(lambda: extracting.ingest("late", 0, told("s1", "My dog is called Rex."), timeout_s=1.0))
    go_on.set()
    assert code_of(error) is grpc.StatusCode.DEADLINE_EXCEEDED
    extracting.models.script = reply_of
    assert extracting.ingest("late", 0, told("s1", "My cat is called Luna."))["memories_stored"] == 1
    assert extracting.texts("late", "dog cat called", 0) == [LUNA]


def test_without_an_extractor_a_day_with_sessions_is_refused_and_an_empty_day_is_committed(extracting: Running) -> None:
    extracting.offered = (EMBEDDER,)
    error = refused(lambda: extracting.ingest("none", 0, told("s1", "My dog is called Rex.")))
    assert (code_of(error), bad_fields(error)) == (grpc.StatusCode.INVALID_ARGUMENT, ["header.model_access"])
    assert extracting.ingest("none", 0) == {}
    assert extracting.search("none", "dog", 0) == []


def test_namespaces_with_a_common_prefix_are_isolated_and_reset_separately(extracting: Running) -> None:
    names = {"u1": "Rex", "u10": "Luna", "u_1": "Pip", "U1": "Bo", "u1/../u10": "Ada"}
    for name, dog in names.items():
        extracting.ingest(name, 0, told("s1", f"My dog is called {dog}."))
    extracting.served.reset("u1")
    for name, dog in names.items():
        if name != "u1":
            assert extracting.texts(name, "What is my dog called?", 0) == [f"The dog of Maya Chen is called {dog}"]
    assert code_of(refused(lambda: extracting.search("u1", "dog", 0))) is grpc.StatusCode.NOT_FOUND


def test_after_a_kill_during_an_extraction_it_has_the_earlier_days_and_ingests_the_day_again(
    tmp_path: Path, models: ModelServer
) -> None:
    day = told("s2", "My cat is called Luna.", day=1)
    reached = threading.Event()

    def hold() -> None:
        reached.set()
        threading.Event().wait(1)

    with running("mem0", tmp_path, models) as backend:
        backend.ingest("n", 0, told("s1", "My dog is called Rex."))
        models.before_chat = hold
        ingest_thread = threading.Thread(target=lambda: refused(lambda: backend.ingest("n", 1, day)))
        ingest_thread.start()
        assert reached.wait(10)
        backend.kill()
        ingest_thread.join(20)
    models.rehearse()
    with running("mem0", tmp_path, models) as backend:
        prompt_count = len(models.prompts)
        assert backend.texts("n", "dog cat called", 0) == [REX]
        assert len(models.prompts) == prompt_count, "what was extracted is not extracted again"
        assert backend.ingest("n", 1, day)["memories_stored"] == 1
        assert sorted(backend.texts("n", "dog cat called", 1)) == [LUNA, REX]


def test_a_search_in_a_lost_store_is_refused(tmp_path: Path, models: ModelServer) -> None:
    with running("mem0", tmp_path, models) as backend:
        backend.ingest("n", 0, told("s1", "My dog is called Rex."))
    for marker in (tmp_path / "data/namespaces").glob("*/*.kept"):
        marker.unlink()
    with running("mem0", tmp_path, models) as backend:
        error = refused(lambda: backend.search("n", "dog", 0))
    assert code_of(error) is grpc.StatusCode.FAILED_PRECONDITION
    assert "Reset the namespace" in message_of(error)


@pytest.mark.parametrize("variant", ["mem0", "mem0_raw"])
def test_it_connects_only_to_loopback_and_writes_only_to_its_data_folder(
    tmp_path: Path, models: ModelServer, variant: str
) -> None:
    report = tmp_path / "report"
    before = (
        str(FOLDER / "tests/watched.py"),
        str(report),
        str(tmp_path / "data"),
        str(tmp_path / "address.tmp"),
        "--",
    )
    with running(variant, tmp_path, models, before=before) as backend:
        backend.ingest("n", 0, told("s1", "My dog is called Rex."))
        assert backend.search("n", "dog", 0)
        backend.process.terminate()
        assert backend.process.wait(timeout=20) == 0
    assert report.read_text(encoding="utf-8") == ""
    assert not list((tmp_path / "home").iterdir())
    assert not list((tmp_path / "current").iterdir())
