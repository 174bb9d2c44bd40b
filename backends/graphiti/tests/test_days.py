"""Tests ingesting days into Graphiti over the contract: with good and with bad replies of the model, and with kills."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena_proto import memory_backend_pb2 as pb

from backends.graphiti.tests.conftest import LACKING, Running, running
from backends.graphiti.tests.scripted_extractor import form_of, reply_of
from tests.backends.own_environment import EMBEDDER, EXTRACTOR, refused
from tests.backends.support import make_day, make_session
from tests.support.model_script import Body, text_of
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")

ZORVA = "My dog is called Zorva."
BRUNOK = "My dog is called Brunok."


def test_a_fact_is_returned_with_its_session_and_its_start(backend: Running) -> None:
    counts = backend.ingest("n", 0, make_session("s0", [ZORVA, "I see."]))
    assert (counts["sessions_given"], counts["memories_stored"]) == (1, 4)
    assert counts["extraction_calls"] == len(backend.models.asked)
    (item,) = backend.search("n", "What is my dog called?", 0, entities="0")
    assert item.text == "The dog of Maya Chen is called Zorva (since 2025-01-01)"
    assert (list(item.source_session_ids), item.valid_from) == (["s0"], "2025-01-01T09:00:00+00:00")


def test_a_contradicted_fact_ends_when_the_new_fact_begins(backend: Running) -> None:
    backend.ingest("n", 0, make_session("s0", [ZORVA]))
    counts = backend.ingest("n", 1, make_session("s1", [BRUNOK], day=1))
    assert counts["memories_changed"] >= 1
    assert backend.facts("n", 1) == [
        "The dog of Maya Chen is called Brunok (since 2025-01-02)",
        "The dog of Maya Chen is called Zorva (from 2025-01-01 to 2025-01-02)",
    ]


def test_a_repeated_fact_is_stored_once_and_names_both_sessions(backend: Running) -> None:
    backend.ingest("n", 0, make_session("s0", [ZORVA]))
    assert backend.ingest("n", 1, make_session("s1", [ZORVA], day=1)).get("memories_stored") is None
    (item,) = backend.search("n", "What is my dog called?", 1, entities="0")
    assert list(item.source_session_ids) == ["s0", "s1"]


def test_keyword_search_works_after_changes_for_questions_with_punctuation_and_line_breaks(backend: Running) -> None:
    for day in range(3):
        backend.ingest("n", day, make_session(f"s{day}", [ZORVA], day=day))
    items = backend.search("n", "Is there a\nZorva?", 2, entities="0", similarity="1")
    assert [item.text[:35] for item in items] == ["The dog of Maya Chen is called Zorv"]


def test_with_an_episode_per_turn_items_name_their_turns(tmp_path: Path, models: ModelServer) -> None:
    with running(tmp_path, models, {"MEMARENA_GRAPHITI_EPISODE": "turn"}) as backend:
        backend.ingest("n", 0, make_session("s0", ["Hello.", "Hi.", ZORVA]))
        (item,) = backend.search("n", "What is my dog called?", 0, entities="0")
        assert list(item.source_turn_ids) == ["s0.2"]


def test_requests_have_a_json_schema_and_the_token_of_the_call(backend: Running) -> None:
    backend.ingest("n", 0, make_session("s0", [ZORVA]))
    assert {request["response_format"]["type"] for request in backend.models.asked} == {"json_schema"}
    assert {request["max_tokens"] for request in backend.models.asked} == {2048}
    assert set(backend.models.authorizations) == {f"Bearer {backend.issued[0]}"}


def test_without_a_schema_in_the_request_the_prompt_has_the_form(tmp_path: Path, models: ModelServer) -> None:
    with running(tmp_path, models, {"MEMARENA_GRAPHITI_RESPONSE_FORMAT": "none"}) as backend:
        backend.ingest("n", 0, make_session("s0", [ZORVA]))
        assert all("response_format" not in request for request in models.asked)
        assert len(backend.facts("n", 0)) == 1


def test_namespaces_with_a_common_prefix_are_isolated(backend: Running) -> None:
    for name, text in (("ego", ZORVA), ("ego_1", BRUNOK), ("ego/1", "My dog is called Milo."), ("ego%", "Nothing.")):
        backend.ingest(name, 0, make_session("s0", [text]))
    assert [fact[31:36] for fact in backend.facts("ego", 0)] == ["Zorva"]
    assert [fact[31:37] for fact in backend.facts("ego_1", 0)] == ["Brunok"]
    assert [fact[31:35] for fact in backend.facts("ego/1", 0)] == ["Milo"]
    assert backend.facts("ego%", 0) == []
    backend.served.reset("ego")
    assert [fact[31:37] for fact in backend.facts("ego_1", 0)] == ["Brunok"]


def test_a_graph_that_was_closed_to_open_another_is_opened_again(tmp_path: Path, models: ModelServer) -> None:
    with running(tmp_path, models, {"MEMARENA_GRAPHITI_OPEN_GRAPHS": "1"}) as backend:
        for name, text in (("a", ZORVA), ("b", BRUNOK)):
            backend.ingest(name, 0, make_session("s0", [text]))
        for _ in range(2):
            assert [fact[31:36] for fact in backend.facts("a", 0)] == ["Zorva"]
            assert [fact[31:37] for fact in backend.facts("b", 0)] == ["Brunok"]
        open_files = {path.readlink() for path in Path(f"/proc/{backend.process.pid}/fd").iterdir()}
        assert sum("graph.kuzu" in str(path) for path in open_files) == 1


# ------------------------------------------------------------------ bad replies and failures of models

LONG = json.dumps({"extracted_entities": [{"name": "x" * 1_000_000, "entity_type_id": 0}]})


@pytest.mark.parametrize("reply", ["Sure! Here are the facts.", "", '{"extracted_entities": [{"na', "[" * 1_000_000])
def test_an_unusable_reply_is_counted_and_the_day_is_committed(backend: Running, reply: str) -> None:
    backend.models.script = lambda body: reply
    counts = backend.ingest("n", 0, make_session("s0", [ZORVA]))
    assert counts == {
        "sessions_given": 1,
        "extraction_calls": 1,
        "extraction_unusable": 1,
        "extraction_empty": 1,
        "sessions_failed": 1,
        "episodes_lost": 1,
    }
    assert backend.facts("n", 0) == []


def test_a_reply_of_a_megabyte_is_stored_or_counted_as_lost(backend: Running) -> None:
    backend.models.script = lambda body: LONG if form_of(body) == "ExtractedEntities" else reply_of(body)
    counts = backend.ingest("n", 0, make_session("s0", [ZORVA]))
    assert counts["memories_stored"] >= 1 or counts["episodes_lost"] == 1
    assert len(backend.facts("n", 0)) == (1 if "memories_stored" in counts else 0)


def test_a_reply_without_facts_counts_as_an_empty_session(backend: Running) -> None:
    backend.models.script = lambda body: '{"extracted_entities": [], "edges": []}'
    counts = backend.ingest("n", 0, make_session("s0", [ZORVA]))
    assert counts["extraction_empty"] == 1
    assert not counts.keys() & {"extraction_unusable", "memories_stored"}


def test_a_failed_session_does_not_affect_other_sessions(backend: Running) -> None:
    def reply(body: Body) -> str:
        return "no" if "GARBLE" in text_of(body) else reply_of(body)

    backend.models.script = reply
    sessions = [make_session("s0", ["GARBLE"]), make_session("s1", [ZORVA], minute=30)]
    counts = backend.ingest("n", 0, *sessions)
    assert (counts["sessions_given"], counts["sessions_failed"]) == (2, 1)
    assert len(backend.facts("n", 0)) == 1


def test_an_unusable_date_is_counted_and_the_fact_is_stored(backend: Running) -> None:
    def reply(body: Body) -> str:
        if form_of(body) == "EdgeTimestamps":
            return "no"
        return reply_of(body).replace('"valid_at": "2025', '"valid_at": "never 2025')

    backend.models.script = reply
    counts = backend.ingest("n", 0, make_session("s0", [ZORVA]))
    assert counts["extraction_unusable"] == 1
    assert backend.facts("n", 0) == ["The dog of Maya Chen is called Zorva"]


def test_a_rejected_prompt_counts_as_a_failed_session(backend: Running) -> None:
    backend.models.chat_status = 400
    assert backend.ingest("n", 0, make_session("s0", [ZORVA]))["sessions_failed"] == 1


@pytest.mark.parametrize("fault", ["chat_status", "embedding_status"])
def test_a_failing_model_ends_the_call_and_the_day_leaves_nothing(backend: Running, fault: str) -> None:
    backend.ingest("n", 0, make_session("s0", [ZORVA]))
    setattr(backend.models, fault, 500)
    error = refused(lambda: backend.ingest("n", 1, make_session("s1", [BRUNOK], day=1)))
    assert error.code().name == "UNAVAILABLE"
    setattr(backend.models, fault, 200)
    assert backend.facts("n", 0) == ["The dog of Maya Chen is called Zorva (since 2025-01-01)"]
    assert backend.ingest("n", 1, make_session("s1", [BRUNOK], day=1))["memories_stored"] == 2


def test_an_error_that_the_library_swallows_ends_the_call(backend: Running) -> None:
    def reply(body: Body) -> str:
        if form_of(body) == "ExtractedEdges":
            backend.models.chat_status = 503  # from the next request on, which asks for a date
        return reply_of(body).replace('"valid_at": "2025', '"valid_at": "never 2025')

    backend.models.script = reply
    error = refused(lambda: backend.ingest("n", 0, make_session("s0", [ZORVA])))
    assert error.code().name == "UNAVAILABLE"


def test_a_call_with_a_slow_model_ends_at_the_deadline(backend: Running) -> None:
    released = threading.Event()
    backend.models.before_chat = lambda: released.wait(20)
    error = refused(lambda: backend.ingest("n", 0, make_session("s0", [ZORVA]), timeout_s=1.5))
    assert error.code().name == "DEADLINE_EXCEEDED"
    released.set()
    assert backend.ingest("n", 0, make_session("s0", [ZORVA]))["memories_stored"] == 3


def test_without_models_a_day_with_text_is_refused_and_an_empty_day_is_committed(backend: Running) -> None:
    frames = make_day("n", 0, [make_session("s0", [ZORVA])])
    error = refused(lambda: backend.served.ingest(frames))
    assert error.code().name == "INVALID_ARGUMENT"
    assert "model_access" in (error.details() or "")
    backend.served.ingest(make_day("n", 0))


# ------------------------------------------------------------------ kills and lost files


def test_a_kill_during_an_ingest_leaves_the_earlier_days_and_nothing_of_that_day(
    tmp_path: Path, models: ModelServer
) -> None:
    arrival = threading.Event()
    released = threading.Event()
    with running(tmp_path, models) as backend:
        backend.ingest("n", 0, make_session("s0", [ZORVA]))

        def hold() -> None:
            if len(models.asked) > 8:  # some of the day is in the database by then
                arrival.set()
                released.wait(30)

        models.before_chat = hold
        sessions = [make_session(f"s{n}", [f"My cat is called Milo{'abcdef'[n]}."], day=1, minute=n) for n in range(6)]
        sending = threading.Thread(target=lambda: refused(lambda: backend.ingest("n", 1, *sessions)))
        sending.start()
        assert arrival.wait(30)
        backend.process.kill()
        sending.join(timeout=30)
        released.set()
    models.before_chat = lambda: None
    before = len(models.asked)
    with running(tmp_path, models) as backend:
        assert backend.facts("n", 0) == ["The dog of Maya Chen is called Zorva (since 2025-01-01)"]
        assert not any("Milo" in item.text for item in backend.search("n", "What is my cat called?", 0))
        assert len(models.asked) == before, "what was committed is not extracted again"
        assert backend.ingest("n", 1, *sessions)["memories_stored"] >= 6


def test_a_search_in_a_lost_graph_is_refused(tmp_path: Path, models: ModelServer) -> None:
    with running(tmp_path, models) as backend:
        backend.ingest("n", 0, make_session("s0", [ZORVA]))
    for marker in (tmp_path / "data" / "graphs").rglob("*.kept"):
        marker.unlink()
    with running(tmp_path, models) as backend:
        error = refused(lambda: backend.facts("n", 0))
        assert error.code().name == "FAILED_PRECONDITION"
        assert "Reset the namespace" in (error.details() or "")


def test_another_embedder_is_refused_with_its_name(backend: Running) -> None:
    backend.ingest("n", 0, make_session("s0", [ZORVA]))
    backend.offered = (EXTRACTOR, pb.Model(name="other", role=EMBEDDER.role))
    error = refused(lambda: backend.facts("n", 0))
    assert error.code().name == "FAILED_PRECONDITION"
    assert "other" in (error.details() or "")


# ------------------------------------------------------------------ what leaves the process


@pytest.fixture
def watched(tmp_path: Path, models: ModelServer) -> Iterator[Running]:
    """Run the backend with an audit hook that logs every address and host name that is not loopback."""
    guard = tmp_path / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(
        "import pathlib, sys\n"
        f"log = pathlib.Path({str(tmp_path / 'left')!r})\n"
        "def watch(event, args):\n"
        "    if event == 'socket.connect' and isinstance(args[1], tuple) and args[1][0] not in ('127.0.0.1', '::1'):\n"
        "        log.open('a').write(f'{args[1]}\\n')\n"
        "    if event == 'socket.getaddrinfo' and args[0] not in ('127.0.0.1', '::1', 'localhost', None):\n"
        "        log.open('a').write(f'{args[0]}\\n')\n"
        "sys.addaudithook(watch)\n"
    )
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / ".env").write_text("GRAPHITI_TELEMETRY_ENABLED=true\nSEMAPHORE_LIMIT=nonsense\n")
    with running(tmp_path, models, {"PYTHONPATH": str(guard)}) as backend:
        yield backend


def test_it_connects_only_to_loopback_and_writes_only_to_the_data_folder(watched: Running, tmp_path: Path) -> None:
    watched.ingest("n", 0, make_session("s0", [ZORVA]))
    assert len(watched.facts("n", 0)) == 1
    assert not (tmp_path / "left").exists(), (tmp_path / "left").read_text()
    assert list((tmp_path / "home").iterdir()) == []
    assert [path.name for path in (tmp_path / "current").iterdir()] == [".env"]
