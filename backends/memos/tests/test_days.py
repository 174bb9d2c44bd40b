"""Tests the backend memos over the contract with the real library: extraction, items, restarts and kills."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from memarena_proto import memory_backend_pb2 as pb

from backends.memos.tests.scripted_extractor import conversation_of
from backends.memos.tests.system import Running, all_written, memory_of, names_pet, running
from tests.backends.own_environment import EXTRACTOR, MODELS
from tests.backends.support import bad_fields, code_of, make_day, make_session
from tests.support.model_script import text_of
from tests.support.model_server import ModelServer


def test_a_session_becomes_memories_that_name_it_and_its_time(backend: Running) -> None:
    sessions = [names_pet("s1", "dog", "Rolo"), make_session("s2", ["It rains.", "It does."], minute=30)]
    counts = backend.ingest(make_day("n", 0, sessions))
    assert counts == {"sessions_given": 2, "extraction_calls": 2, "extraction_empty": 1, "memories_stored": 1}
    (item,) = backend.search("n", 0, "What is my dog called?")
    assert (item.text, list(item.source_session_ids)) == (memory_of("dog", "Rolo"), ["s1"])
    assert (item.time, item.derived, list(item.source_turn_ids)) == ("2025-01-01T09:00:00+00:00", True, [])
    assert 0.3 < item.score <= 1.0


def test_the_prompt_is_that_of_the_library_with_roles_times_and_names(backend: Running) -> None:
    backend.ingest(make_day("n", 0, [names_pet("s1", "dog", "Rolo")]))
    (request,) = backend.model.asked
    assert text_of(request).startswith("You are a memory extraction expert.")
    assert conversation_of(request).splitlines() == [
        "user: [Wednesday 1 January 2025 09:00] Maya Chen: My dog is called Rolo.",
        "assistant: [Wednesday 1 January 2025 09:01] Omar Haddad: How lovely!",
    ]


def test_results_are_ordered_by_score_and_bounded_by_k_and_max_items(backend: Running) -> None:
    pets = {"dog": "Rolo", "cat": "Mimi", "parrot": "Koko", "tortoise": "Turbo"}
    backend.ingest(make_day("n", 0, [names_pet(f"s-{pet}", pet, name) for pet, name in pets.items()]))
    items = backend.search("n", 0, "parrot Koko", options=[pb.Option(key="k", value="2")])
    assert items[0].text == memory_of("parrot", "Koko") and len(items) == 2
    assert items[0].score > items[1].score
    assert len(backend.search("n", 0, "parrot", max_items=3)) == 3


def test_a_session_above_the_models_window_is_extracted_in_parts(backend: Running) -> None:
    long = make_session("s1", [*["word " * 300] * 6, "My dog is called Rolo."])
    small = pb.Model(name="extractor", role=pb.MODEL_ROLE_EXTRACTOR, context_window_tokens=6_144)
    counts = backend.ingest(make_day("n", 0, [long]), (small, MODELS[1]))
    assert counts["extraction_calls"] > 1 and counts["sessions_given"] == counts["memories_stored"] == 1
    assert all(len(prompt.encode()) <= (6_144 - 2_048) * 3 for prompt in backend.model.prompts)


def test_models_are_asked_for_before_anything_is_done_and_only_where_there_are_words(backend: Running) -> None:
    day = make_day("n", 0, [names_pet("s1", "dog", "Rolo")])
    for models in ((), (EXTRACTOR,), MODELS[1:]):
        with pytest.raises(grpc.RpcError) as refused:
            backend.ingest(day, models) if models else backend.served.ingest(day)
        assert bad_fields(refused.value) == ["header.model_access"]
    assert backend.model.prompts == []
    backend.served.ingest(make_day("n", 0, [make_session("s0", ["", " "])]))
    assert backend.search("n", 0) == []


def test_a_restart_and_a_replay_send_no_prompt(tmp_path: Path, mortal: Running, model: ModelServer) -> None:
    days = [make_day("n", day, [names_pet(f"s{day}", "dog", f"Rolo{day}", day=day)]) for day in range(3)]
    for day in days:
        mortal.ingest(day)
    before = mortal.texts("n", 2)
    mortal.kill()
    prompts_before = len(model.prompts)
    with running(tmp_path, model) as again:
        assert again.texts("n", 2) == before == [memory_of("dog", f"Rolo{day}") for day in range(3)]
        assert again.served.ingest(days[1]).replayed
        assert again.texts("n", 2) == before
        assert len(model.prompts) == prompts_before
        again.ingest(make_day("n", 3, [names_pet("s3", "dog", "Rolo3", day=3)]))
        assert len(again.texts("n", 3)) == 4


def test_a_kill_during_an_ingest_leaves_nothing_of_the_day_which_can_be_sent_again(
    tmp_path: Path, mortal: Running, model: ModelServer
) -> None:
    mortal.ingest(make_day("n", 0, [names_pet("s0", "dog", "Rolo")]))
    second = make_day("n", 1, [names_pet("s1", "cat", "Mimi", day=1), names_pet("s2", "cow", "Elsa", day=1)])
    arrived, go_on = threading.Event(), threading.Event()

    def hold_second_session() -> None:
        if "Elsa" in model.prompts[-1]:
            arrived.set()
            go_on.wait(30)

    model.before_chat = hold_second_session
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(mortal.ingest, second)
        assert arrived.wait(30)
        mortal.kill()
        with pytest.raises(grpc.RpcError):
            pending.result()
    go_on.set()
    with running(tmp_path, model) as again:
        assert again.texts("n", 0) == [memory_of("dog", "Rolo")]
        assert again.ingest(second)["memories_stored"] == 2
        assert again.texts("n", 1) == sorted(
            [memory_of("dog", "Rolo"), memory_of("cat", "Mimi"), memory_of("cow", "Elsa")]
        )


def test_equal_memories_keep_their_order_over_a_restart(tmp_path: Path, mortal: Running, model: ModelServer) -> None:
    for day in range(4):
        mortal.ingest(make_day("n", day, [names_pet(f"s{day}{n}", "dog", "Rolo", day=day) for n in range(4)]))

    def first_five(running: Running) -> list[list[str]]:
        items = running.search("n", 3, "dog", options=[pb.Option(key="k", value="5")])
        return [list(item.source_session_ids) for item in items]

    before = first_five(mortal)
    assert before == [["s00"], ["s01"], ["s02"], ["s03"], ["s10"]]
    mortal.kill()
    with running(tmp_path, model) as again:
        assert first_five(again) == before


def test_repeated_searches_return_the_same_scores(backend: Running) -> None:
    backend.ingest(make_day("n", 0, [names_pet(f"s{n}", "dog", f"Rolo{n}") for n in range(6)]))
    before = [(item.text, item.score) for item in backend.search("n", 0, "Rolo3")]
    for _ in range(50):
        assert [(item.text, item.score) for item in backend.search("n", 0, "Rolo3")] == before


def test_searches_of_one_namespace_may_overlap(backend: Running) -> None:
    backend.ingest(make_day("n", 0, [names_pet(f"s{n}", "dog", f"Rolo{n}") for n in range(8)]))
    expected = backend.texts("n", 0)
    with ThreadPoolExecutor(8) as pool:
        assert all(texts == expected for texts in pool.map(lambda _: backend.texts("n", 0), range(40)))


def test_namespaces_with_similar_names_are_isolated(backend: Running) -> None:
    names = ("n1", "n10", "N1", "n_1", "n%", "n/../n1")
    for number, name in enumerate(names):
        backend.ingest(make_day(name, 0, [names_pet("s1", "dog", f"Rolo{number}")]))
    for number, name in enumerate(names):
        assert backend.texts(name, 0) == [memory_of("dog", f"Rolo{number}")]


def test_reset_leaves_no_file_of_a_namespace(backend: Running) -> None:
    backend.ingest(make_day("n1", 0, [names_pet("s1", "dog", "Rolo")]))
    backend.ingest(make_day("n2", 0, [names_pet("s1", "dog", "Bello")]))
    backend.served.reset("n1")
    remaining = [path for path in all_written(backend.data / "memories") if b"Rolo" in path.read_bytes()]
    assert remaining == []
    with pytest.raises(grpc.RpcError) as failure:
        backend.search("n1", 0)
    assert code_of(failure.value) is grpc.StatusCode.NOT_FOUND
    assert backend.texts("n2", 0) == [memory_of("dog", "Bello")]
