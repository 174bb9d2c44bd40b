"""Tests failures of memos's models: unusable replies are counted and the day goes on, a failing model ends the day."""

from __future__ import annotations

import json
import threading
from functools import partial
from pathlib import Path

import grpc
import pytest
from memarena_proto import memory_backend_pb2 as pb

from backends.memos.tests.scripted_extractor import conversation_of, reply_of
from backends.memos.tests.system import Running, memory_of, names_pet, running
from tests.backends.own_environment import EXTRACTOR
from tests.backends.support import code_of, make_day, message_of, retry_delay_s
from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer

MEMORY = {"key": "k", "memory_type": "UserMemory", "value": "Maya has a dog.", "tags": ["dog"]}
UNUSABLE = {
    "empty": "",
    "blank": " \n\t",
    "prose": "I could not find anything to remember, sorry!",
    "code block of nothing": "```",
    "a number": "42",
    "garbage of 1 MB": "lorem ipsum {" * 80_000,
    "nested JSON of 1 MB": '{"a":' * 200_000,
    "cut off": '{"memory list": [{"key": "k", "value": "Maya has',
    "other keys": '{"memories": []}',
    "no list": '{"memory list": 7}',
    "null": '{"memory list": null}',
    "texts": '{"memory list": ["Maya has a dog."]}',
    "a key is missing": '{"memory list": [{"key": "k", "value": "Maya has a dog."}]}',
    "value is a list": json.dumps({"memory list": [{**MEMORY, "value": ["Maya"]}]}),
    "tags are a text": json.dumps({"memory list": [{**MEMORY, "tags": "dog"}]}),
    "a number of 10,000 digits": '{"memory list": [], "summary": ' + "9" * 10_000 + "}",
}


def day_of_two() -> list[pb.IngestRequest]:
    return make_day("n", 0, [names_pet("s1", "cat", "Mimi"), names_pet("s2", "dog", "Rolo")])


def only_of_a_dog(reply: str, body: Body) -> str:
    """Reply by the rules to a conversation about a dog, and with ``reply`` to any other."""
    return reply_of(body) if "dog" in conversation_of(body) else reply


def test_unusable_replies_are_counted_and_do_not_affect_other_sessions(backend: Running) -> None:
    for number, (kind, reply) in enumerate(UNUSABLE.items()):
        backend.model.script = partial(only_of_a_dog, reply)
        namespace = f"n{number}"
        day = make_day(namespace, 0, [names_pet("s1", "cat", "Mimi"), names_pet("s2", "dog", "Rolo")])
        prompts_before = len(backend.model.prompts)
        expected = {"sessions_given": 2, "extraction_calls": 2, "memories_stored": 1}
        assert backend.ingest(day) == {**expected, "extraction_unusable": 1, "extraction_empty": 1}, kind
        assert len(backend.model.prompts) == prompts_before + 2, f"{kind}: asked again"
        assert backend.texts(namespace, 0) == [memory_of("dog", "Rolo")], kind


def test_the_notice_of_unusable_replies_has_their_reasons(backend: Running) -> None:
    backend.model.script = lambda _: ""
    notice = backend.notices(day_of_two())["extraction_unusable"]
    assert notice.message == "replies that could not be used: 2 empty"
    backend.model.script = Script('{"memory list": [{"key', finish_reason="length")
    notice = backend.notices(make_day("m", 0, [names_pet("s1", "cat", "Mimi")]))["extraction_unusable"]
    assert notice.message == "replies that could not be used: 1 cut off"


def test_an_empty_list_of_memories_counts_as_an_empty_session(backend: Running) -> None:
    backend.model.script = lambda _: '{"memory list": [], "summary": ""}'
    counts = backend.ingest(day_of_two())
    assert counts == {"sessions_given": 2, "extraction_calls": 2, "extraction_empty": 2}
    assert backend.search("n", 0) == []


def test_a_usable_reply_of_1_mb_is_stored_whole(backend: Running) -> None:
    memories = [{**MEMORY, "value": f"Fact {number}: {'x' * 9_900}"} for number in range(100)]
    backend.model.script = lambda _: json.dumps({"memory list": memories})
    counts = backend.ingest(make_day("n", 0, [names_pet("s1", "cat", "Mimi")]))
    assert counts == {"sessions_given": 1, "extraction_calls": 1, "memories_stored": 100}
    assert len(backend.search("n", 0, options=[pb.Option(key="k", value="1000")])) == 100
    assert max(map(len, backend.model.embedded)) == 8_192


@pytest.mark.parametrize(
    "reply",
    [
        '<think>A {dog}?</think>{"memory list": [{"key": "k", "value": "Maya has a dog.", "tags": []}]}',
        'Here you are: {"memory list": [{"key": null, "value": " Maya has a dog. ", "tags": null}]}',
        '{"memory list": [{"key": "\\ud800", "value": "Maya has a dog.", "tags": ["\\udfff"]}]}',
        '{"memory list": [{"key": "k", "value": "Maya has a dog.", "tags": []}, {"key": "", "value": " ", "tags": []}]}',  # noqa: E501
    ],
)
def test_a_reply_that_the_library_can_parse_is_stored(backend: Running, reply: str) -> None:
    backend.model.script = lambda _: reply
    assert backend.ingest(make_day("n", 0, [names_pet("s1", "cat", "Mimi")]))["memories_stored"] == 1
    assert backend.texts("n", 0) == ["Maya has a dog."]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 502, 504])
def test_a_failing_model_ends_the_day_and_leaves_nothing_of_it(backend: Running, status: int) -> None:
    backend.ingest(make_day("n", 0, [names_pet("s0", "cow", "Elsa")]))
    second = make_day("n", 1, [names_pet("s1", "cat", "Mimi", day=1), names_pet("s2", "dog", "Rolo", day=1)])
    backend.model.script = lambda body: status if "Rolo" in conversation_of(body) else reply_of(body)
    with pytest.raises(grpc.RpcError) as failed:
        backend.ingest(second)
    assert code_of(failed.value) is grpc.StatusCode.UNAVAILABLE and retry_delay_s(failed.value)
    assert f"{status}" in message_of(failed.value)
    assert backend.texts("n", 0) == [memory_of("cow", "Elsa")]
    backend.model.script = reply_of
    assert backend.ingest(second)["memories_stored"] == 2
    assert len(backend.texts("n", 1)) == 3


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_rejected_prompt_loses_its_session_and_no_other(backend: Running, status: int) -> None:
    backend.model.script = lambda body: status if "Mimi" in conversation_of(body) else reply_of(body)
    notices = backend.notices(day_of_two())
    assert {code: notice.count for code, notice in notices.items()} == {
        "sessions_given": 2,
        "extraction_calls": 2,
        "extraction_empty": 1,
        "sessions_failed": 1,
        "memories_stored": 1,
    }
    assert f"{status}" in notices["sessions_failed"].message
    assert backend.texts("n", 0) == [memory_of("dog", "Rolo")]


def test_a_failing_embedder_ends_the_day_and_the_search(backend: Running) -> None:
    backend.ingest(make_day("n", 0, [names_pet("s0", "cow", "Elsa")]))
    backend.model.embedding_status = 502
    with pytest.raises(grpc.RpcError) as failed:
        backend.ingest(make_day("n", 1, [names_pet("s1", "cat", "Mimi", day=1)]))
    assert code_of(failed.value) is grpc.StatusCode.UNAVAILABLE
    with pytest.raises(grpc.RpcError) as unsearched:
        backend.search("n", 0)
    assert code_of(unsearched.value) is grpc.StatusCode.UNAVAILABLE
    backend.model.embedding_status = 200
    assert backend.texts("n", 0) == [memory_of("cow", "Elsa")]


def test_after_a_deadline_the_day_can_be_sent_again(backend: Running) -> None:
    go_on = threading.Event()
    backend.model.before_chat = lambda: go_on.wait(30)
    with pytest.raises(grpc.RpcError) as late:
        backend.ingest(day_of_two(), timeout_s=1.0)
    assert code_of(late.value) is grpc.StatusCode.DEADLINE_EXCEEDED
    go_on.set()
    while True:
        try:
            assert backend.ingest(day_of_two())["memories_stored"] == 2
        except grpc.RpcError as pending:
            assert code_of(pending) is grpc.StatusCode.ABORTED  # the previous call has not ended yet (GEN-5)
            continue
        break
    assert backend.texts("n", 0) == sorted([memory_of("cat", "Mimi"), memory_of("dog", "Rolo")])


def test_a_search_with_another_embedder_is_refused(backend: Running) -> None:
    backend.ingest(day_of_two())
    other = (EXTRACTOR, pb.Model(name="another", role=pb.MODEL_ROLE_EMBEDDER))
    with pytest.raises(grpc.RpcError) as refused:
        backend.search("n", 0, model_access=backend.access(other))
    assert code_of(refused.value) is grpc.StatusCode.FAILED_PRECONDITION
    assert "vectors of scripted-embedder with 64 dimensions" in message_of(refused.value)


def test_a_search_after_the_folder_of_memories_was_lost_is_refused(
    tmp_path: Path, mortal: Running, model: ModelServer
) -> None:
    mortal.ingest(day_of_two())
    mortal.kill()
    (mortal.data / "memories").rename(tmp_path / "lost")
    with running(tmp_path, model) as again:
        with pytest.raises(grpc.RpcError) as refused:
            again.search("n", 0)
        assert code_of(refused.value) is grpc.StatusCode.FAILED_PRECONDITION
        assert "Reset the namespace" in message_of(refused.value)
        again.served.reset("n")
        assert again.ingest(day_of_two())["memories_stored"] == 2
