"""Tests the variant mem0_raw over the contract: it stores turns verbatim and searches by vector, without an LLM."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from memarena_proto import memory_backend_pb2 as pb

from backends.mem0.tests.conftest import LACKING, Running, running
from tests.backends.own_environment import MODELS, refused
from tests.backends.support import bad_fields, code_of, make_session
from tests.support.model_server import ModelServer

if LACKING:
    pytest.skip(LACKING, allow_module_level=True)


@pytest.fixture(scope="module")
def raw(models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running("mem0_raw", tmp_path_factory.mktemp("raw"), models) as started:
        yield started


@pytest.fixture(autouse=True)
def _offered(raw: Running) -> Iterator[None]:
    yield
    raw.offered = MODELS


def test_a_turn_is_returned_unchanged_with_its_session_turn_and_time(raw: Running) -> None:
    text = "  My dog\nis called\tRex… 🐕 \x01"
    prompts = len(raw.models.prompts)
    assert raw.ingest("n", 0, make_session("s1", [text, ""])) == {"sessions_given": 1, "memories_stored": 1}
    (item,) = raw.search("n", "dog", 0)
    assert item.text == f"Maya Chen: {text}"
    assert (list(item.source_session_ids), list(item.source_turn_ids)) == (["s1"], ["s1.0"])
    assert (item.time, item.derived) == ("2025-01-01T09:00:00+00:00", False)
    assert len(raw.models.prompts) == prompts, "no language model is asked"


def test_equal_turns_are_separate_memories(raw: Running) -> None:
    assert raw.ingest("twice", 0, make_session("s1", ["Rex barks.", "Rex barks."]))["memories_stored"] == 2
    assert len(raw.search("twice", "Rex", 0)) == 2


def test_results_are_ordered_by_score_and_bounded_by_k_and_threshold(raw: Running) -> None:
    raw.ingest("near", 0, make_session("s1", [f"Number {n} is here." for n in range(30)] + ["Rex barks."]))
    items = raw.search("near", "Rex barks.", 0, k="3")
    assert items[0].text.endswith("Rex barks.")
    assert len(items) <= 3
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)
    assert raw.search("near", "Rex barks.", 0, threshold="0.7") == items[:1]
    assert raw.search("near", "Rex barks.", 0, threshold="0.99") == []


def test_repeated_searches_return_the_same_scores(raw: Running) -> None:
    raw.ingest(
        "again", 0, make_session("s1", [f"Rex saw {n} birds and {n + 1} cats in {n + 2} days." for n in range(40)])
    )
    first = raw.search("again", "How many birds did Rex see in 7 days?", 0, k="40")
    assert len(first) == 40
    assert all(raw.search("again", "How many birds did Rex see in 7 days?", 0, k="40") == first for _ in range(10))


def test_a_long_text_is_stored_whole_and_its_cut_embedding_is_counted(raw: Running) -> None:
    long = "Rex barks. " * 2_000
    counts = raw.ingest("long", 0, make_session("s1", [long]))
    assert counts == {"sessions_given": 1, "memories_stored": 1, "embedding_cut": 1}
    assert raw.texts("long", "Rex", 0) == [f"Maya Chen: {long}"]
    assert max(map(len, raw.models.embedded)) == 6_000


def test_a_search_without_the_embedder_of_the_namespace_is_refused(raw: Running) -> None:
    raw.ingest("made-with", 0, make_session("s1", ["Rex barks."]))
    raw.offered = ()
    missing = refused(lambda: raw.search("made-with", "Rex", 0))
    assert (code_of(missing), bad_fields(missing)) == (grpc.StatusCode.INVALID_ARGUMENT, ["model_access"])
    raw.offered = (pb.Model(name="another", role=pb.MODEL_ROLE_EMBEDDER),)
    assert code_of(refused(lambda: raw.search("made-with", "Rex", 0))) is grpc.StatusCode.FAILED_PRECONDITION


def test_without_an_offered_embedder_it_uses_the_model_in_the_process(raw: Running) -> None:
    raw.offered = ()
    raw.ingest("own", 0, make_session("s1", ["My dog is called Rex.", "I will buy bread tomorrow."]))
    begin = len(raw.models.authorizations)
    assert raw.texts("own", "What is the name of my dog?", 0)[0] == "Maya Chen: My dog is called Rex."
    raw.offered = MODELS
    assert raw.texts("own", "What is the name of my dog?", 0)[0] == "Maya Chen: My dog is called Rex."
    assert len(raw.models.authorizations) == begin


def test_a_question_of_white_space_returns_nothing(raw: Running) -> None:
    raw.ingest("blank", 0, make_session("s1", ["Rex barks."]))
    assert raw.search("blank", " \n", 0) == []


def test_after_a_kill_during_a_search_it_answers_the_same_question_alike(tmp_path: Path, models: ModelServer) -> None:
    reached = threading.Event()

    def hold(texts: list[str]) -> None:
        reached.set()
        threading.Event().wait(1)

    with running("mem0_raw", tmp_path, models) as backend:
        backend.ingest("n", 0, make_session("s1", ["Rex barks."]))
        before = backend.search("n", "Rex", 0)
        models.before_embedding = hold
        search_thread = threading.Thread(target=lambda: refused(lambda: backend.search("n", "Rex", 0)))
        search_thread.start()
        assert reached.wait(10)
        backend.kill()
        search_thread.join(20)
    models.rehearse()
    with running("mem0_raw", tmp_path, models) as backend:
        assert backend.search("n", "Rex", 0) == before != []


def test_days_survive_sigkill_and_results_stay_the_same(tmp_path: Path, models: ModelServer) -> None:
    with running("mem0_raw", tmp_path, models) as backend:
        for day in range(3):
            backend.ingest("n", day, make_session(f"s{day}", ["Rex barks.", "Rex sleeps."], day=day))
        before = backend.search("n", "Rex barks", 2)
        backend.kill()
    with running("mem0_raw", tmp_path, models) as backend:
        assert len(before) == 6
        assert backend.search("n", "Rex barks", 2) == before
