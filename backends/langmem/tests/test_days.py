"""Tests the backend langmem over the contract: any reply of its models ends well, and a failed day leaves nothing."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from memarena_proto import memory_backend_pb2 as pb

from backends.langmem.tests.conftest import LACKING, running
from backends.langmem.tests.scripted_extractor import reply_of, tool_call
from tests.backends.own_environment import EMBEDDER, EXTRACTOR, MODELS, RunningBackend, refused
from tests.backends.support import bad_fields, code_of, make_session, message_of
from tests.support.model_script import Body
from tests.support.model_server import ModelServer

if LACKING:
    pytest.skip(LACKING, allow_module_level=True)

REX, FIDO = "The dog of Maya Chen is called Rex", "The dog of Maya Chen is called Fido"
NOTHING_EXTRACTED = {"sessions_given": 1, "extraction_calls": 1, "extraction_unusable": 1, "extraction_empty": 1}


def session_saying(session_id: str, text: str, day: int = 0) -> pb.Session:
    return make_session(session_id, [text, "I see."], day=day)


def reply_with_calls(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def test_a_memory_is_returned_with_its_session_and_time(backend: RunningBackend) -> None:
    counts = backend.ingest(
        "fact", 0, session_saying("s1", "My dog is called Rex."), session_saying("s2", "Nice weather.")
    )
    assert counts == {
        "sessions_given": 2,
        "extraction_calls": 2,
        "extraction_unusable": 1,
        "extraction_empty": 1,
        "memories_stored": 1,
    }
    (item,) = backend.search("fact", "What is my dog called?", 0)
    assert (item.text, list(item.source_session_ids), item.derived) == (REX, ["s1"], True)
    assert item.time == "2025-01-01T09:00:00+00:00"


def test_a_rewritten_memory_names_every_session_that_fed_it(backend: RunningBackend) -> None:
    backend.ingest("patch", 0, session_saying("s1", "My dog is called Rex."))
    assert backend.ingest("patch", 1, session_saying("s2", "My dog is called Fido.", day=1)) == {
        "sessions_given": 1,
        "extraction_calls": 1,
        "memories_changed": 1,
    }
    (item,) = backend.search("patch", "dog", 1)
    assert (item.text, list(item.source_session_ids)) == (FIDO, ["s1", "s2"])
    assert item.time == "2025-01-02T09:00:00+00:00"


def test_the_prompt_of_langmem_has_the_form_that_the_scripted_extractor_parses(
    backend: RunningBackend, extractor: ModelServer
) -> None:
    """The parts that depend on a session, as LangMem 0.0.30 sends them."""
    backend.ingest("prompt", 4, make_session("s1", ["My dog is called Rex.", "I see."], day=4, place="Luna"))
    backend.ingest("prompt", 5, session_saying("s2", "My dog is called Fido.", day=5))
    first, second = extractor.asked
    assert [[message["role"] for message in body["messages"]] for body in (first, second)] == [["system", "user"]] * 2
    session = re.sub(r"session_[0-9a-f-]{36}", "session", str(first["messages"][1]["content"]))
    assert session[session.index("<session>") :] == (
        "<session>\n"
        "================================ Human Message =================================\n\n"
        "Sunday 5 January 2025 [at Luna]\n09:00 Maya Chen: My dog is called Rex.\n\n"
        "================================== Ai Message ==================================\n\n"
        "09:01 Omar Haddad: I see.\n"
        "</session>"
    )
    assert "<existing>" not in str(first["messages"])
    system = re.sub(r"id=[0-9a-f]{32}", "id=KEY", str(second["messages"][0]["content"]))
    assert system[system.index("<existing>") :].strip() == (
        '<existing>\n<instance id=KEY schema_type="Memory">\n'
        "{'content': 'The dog of Maya Chen is called Rex'}\n</instance>\n</existing>"
    )
    tools = [[tool["function"]["name"] for tool in body["tools"]] for body in (first, second)]
    assert tools == [["Memory"], ["PatchDoc", "Memory"]]
    assert [body.get("tool_choice") for body in (first, second)] == [None, "required"]
    assert [(body["max_tokens"], body["temperature"]) for body in (first, second)] == [(1_024, 0.0)] * 2


def test_every_model_request_has_the_token_of_its_call(backend: RunningBackend, extractor: ModelServer) -> None:
    backend.ingest(
        "token", 0, session_saying("s1", "My dog is called Rex."), session_saying("s2", "My cat is called Tom.")
    )
    assert extractor.authorizations == [f"Bearer {backend.issued[-1]}"] * 2


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "I have found nothing, sorry."},
        {"role": "assistant", "content": "x" * 1_000_000},
        reply_with_calls(tool_call("Memory", '{"content": "User has a d')),
        reply_with_calls(tool_call("Memory", "")),
        reply_with_calls(tool_call("Memory", "[" * 50_000)),
        reply_with_calls(tool_call("Memory", ["User has a dog"])),
        reply_with_calls(tool_call("Memory", {"text": "User has a dog"})),
        reply_with_calls(tool_call("Memory", {"content": 5})),
        reply_with_calls(tool_call("Memory", {"content": " \n"})),
        reply_with_calls(tool_call("Memory", '{"content": "\\ud800"}')),
        reply_with_calls(tool_call("Forget", {"content": "User has a dog"})),
        reply_with_calls(tool_call("Memory", {"content": "x" * 1_000_000})),
    ],
    ids=[
        *("empty", "prose", "1MB", "cut", "no-arguments", "deep", "list", "other-field", "number", "blank", "half"),
        *("other-tool", "1MB-tool"),
    ],
)
def test_a_reply_without_a_usable_memory_is_counted_and_the_day_is_committed(
    backend: RunningBackend, extractor: ModelServer, message: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    extractor.script = lambda _: message
    assert backend.ingest(name, 0, session_saying("s1", "My dog is called Rex.")) == NOTHING_EXTRACTED
    assert backend.texts(name, "dog", 0) == []
    extractor.script = reply_of
    backend.ingest(name, 1, session_saying("s2", "My dog is called Rex.", day=1))
    assert backend.texts(name, "dog", 1) == [REX]


def test_usable_calls_of_a_reply_count_despite_unusable_ones(backend: RunningBackend, extractor: ModelServer) -> None:
    good, bad = tool_call("Memory", {"content": REX}), tool_call("Memory", {"nonsense": 1}, 1)
    extractor.script = lambda _: reply_with_calls(good, bad)
    counts = backend.ingest("half-good", 0, session_saying("s1", "My dog is called Rex."))
    assert counts == {"sessions_given": 1, "extraction_calls": 1, "memories_stored": 1}


def patching(body: Body, patches: object, times: int = 1) -> dict[str, Any]:
    """Return patches of the first memory in the prompt; a reply without calls if it has none."""
    keys = re.findall(r"<instance id=(\S+) ", str(body["messages"][0]["content"]))
    args = [{"json_doc_id": key, "planned_edits": "", "patches": patches} for key in keys[:1] * times]
    return reply_with_calls(*(tool_call("PatchDoc", arguments, number) for number, arguments in enumerate(args)))


WITHOUT_TEXT = [{"op": "remove", "path": "/content"}]


@pytest.mark.parametrize(
    "patches",
    ["no list", [{"op": "replace", "path": "/nowhere/at/all", "value": 1}], WITHOUT_TEXT],
    ids=["no-list", "nowhere", "removes-the-text"],
)
def test_a_patch_that_cannot_be_applied_leaves_the_memory_as_it_was(
    backend: RunningBackend, extractor: ModelServer, patches: object, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    backend.ingest(name, 0, session_saying("s1", "My dog is called Rex."))
    extractor.script = lambda body: patching(body, patches)
    counts = backend.ingest(name, 1, session_saying("s2", "My dog is called Fido.", day=1))
    assert counts["extraction_empty"] == 1
    assert "memories_changed" not in counts
    assert backend.texts(name, "dog", 1) == [REX]


def test_a_session_is_given_up_after_five_model_calls(backend: RunningBackend, extractor: ModelServer) -> None:
    """Each of nine patches removes the memory's text, and after each the library asks again.

    Two sessions of at most five calls each are 10; one reply of each session has usable calls, so 8 have none.
    """
    backend.ingest("endless", 0, session_saying("s1", "My dog is called Rex."))
    extractor.asked.clear()
    extractor.script = lambda body: patching(body, WITHOUT_TEXT, times=9)
    counts = backend.ingest(
        "endless", 1, session_saying("s2", "My dog is called Fido.", day=1), session_saying("s3", "Nice.", day=1)
    )
    assert len(extractor.asked) == 10
    assert counts == {
        "sessions_given": 2,
        "extraction_calls": 10,
        "extraction_unusable": 8,
        "extraction_empty": 2,
        "sessions_failed": 2,
    }
    assert backend.texts("endless", "dog", 1) == [REX]


@pytest.mark.parametrize("reply", [500, b"{not json", b'{"choices": []}'], ids=["500", "no JSON", "no choice"])
def test_a_failing_model_ends_the_day_at_once_and_leaves_nothing_of_it(
    backend: RunningBackend, extractor: ModelServer, reply: int | bytes, request: pytest.FixtureRequest
) -> None:
    name = f"fails-{request.node.callspec.id}"
    backend.ingest(name, 0, session_saying("s1", "My dog is called Rex."))
    extractor.asked.clear()
    extractor.script = lambda _: reply
    error = refused(lambda: backend.ingest(name, 1, session_saying("s2", "My dog is called Fido.", day=1)))
    assert code_of(error) is grpc.StatusCode.UNAVAILABLE
    assert "scripted-extractor" in message_of(error)
    assert len(extractor.asked) == 1
    extractor.script = reply_of
    assert backend.texts(name, "dog", 0) == [REX]
    backend.ingest(name, 1, session_saying("s2", "My dog is called Fido.", day=1))
    assert backend.texts(name, "dog", 1) == [FIDO]


def test_a_failing_embedder_ends_the_day_while_a_memory_is_stored(
    backend: RunningBackend, extractor: ModelServer
) -> None:
    """LangMem stores in threads whose errors it ignores: the memory would be lost silently."""
    backend.offered = MODELS

    def fail_after_the_first(_: list[str]) -> None:
        """Fail on the second embedding: the library first searches for memories to change, and then stores."""
        extractor.embedding_status = 503 if extractor.embedded else 200

    extractor.before_embedding = fail_after_the_first
    error = refused(lambda: backend.ingest("embed", 0, session_saying("s1", "My dog is called Rex.")))
    assert code_of(error) is grpc.StatusCode.UNAVAILABLE
    assert EMBEDDER.name in message_of(error)
    assert len(extractor.asked) == 1
    backend.offered = (EXTRACTOR,)
    assert code_of(refused(lambda: backend.texts("embed", "dog", 0))) is grpc.StatusCode.NOT_FOUND
    backend.ingest("embed", 0, session_saying("s1", "My dog is called Rex."))
    assert backend.texts("embed", "dog", 0) == [REX]


def test_a_deadline_leaves_nothing_of_the_day(backend: RunningBackend, extractor: ModelServer) -> None:
    backend.ingest("deadline", 0, session_saying("s1", "My dog is called Rex."))
    going_on = threading.Event()
    extractor.before_chat = lambda: going_on.wait(10)
    fido = session_saying("s2", "My dog is called Fido.", day=1)
    error = refused(lambda: backend.ingest("deadline", 1, fido, timeout_s=0.5))
    assert code_of(error) is grpc.StatusCode.DEADLINE_EXCEEDED
    going_on.set()
    assert _until_answered(lambda: backend.texts("deadline", "dog", 0)) == [REX]


def test_without_a_model_a_day_with_text_is_refused_and_a_day_without_text_is_committed(
    backend: RunningBackend,
) -> None:
    backend.offered = ()
    error = refused(lambda: backend.ingest("none", 0, session_saying("s1", "My dog is called Rex.")))
    assert (code_of(error), bad_fields(error)) == (grpc.StatusCode.INVALID_ARGUMENT, ["header.model_access"])
    assert backend.ingest("none", 0, make_session("s1", ["", " "])) == {}
    assert backend.texts("none", "dog", 0) == []


def test_memories_are_searched_with_the_model_that_embedded_them(
    backend: RunningBackend, extractor: ModelServer
) -> None:
    """Here with the model in the process, although the call offers another embedder."""
    backend.ingest("model", 0, session_saying("s1", "My dog is called Rex."))
    backend.offered = MODELS
    assert backend.texts("model", "dog", 0) == [REX]
    assert extractor.embedded == []


def test_a_rejected_prompt_loses_its_session_and_no_other(backend: RunningBackend, extractor: ModelServer) -> None:
    extractor.script = lambda body: 400 if "Fido" in str(body) else reply_of(body)
    counts = backend.ingest(
        "long", 0, session_saying("s1", "My dog is called Fido."), session_saying("s2", "My dog is called Rex.")
    )
    assert (counts["sessions_given"], counts["sessions_failed"], counts["memories_stored"]) == (2, 1, 1)
    assert backend.texts("long", "dog", 0) == [REX]


def test_namespaces_with_a_common_prefix_are_isolated(backend: RunningBackend) -> None:
    names = ("u1", "u10", "U1", "u_1", "../u1")
    for number, name in enumerate(names):
        backend.ingest(name, 0, session_saying("s", f"My dog is called Rex{number}."))
    for number, name in enumerate(names):
        assert backend.texts(name, "dog", 0) == [f"The dog of Maya Chen is called Rex{number}"]


def test_after_a_kill_during_an_ingest_it_continues_from_the_previous_day(tmp_path: Path) -> None:
    with ModelServer(reply_of) as extractor:
        with running(tmp_path, extractor.base_url) as backend:
            backend.ingest("n", 0, session_saying("s1", "My dog is called Rex."))
            arrival, going_on = threading.Event(), threading.Event()

            def hold() -> None:
                arrival.set()
                going_on.wait(10)

            extractor.before_chat = hold
            day = session_saying("s2", "My dog is called Fido.", day=1)
            sending = threading.Thread(target=refused, args=[lambda: backend.ingest("n", 1, day)])
            sending.start()
            assert arrival.wait(20)
            backend.kill()
            going_on.set()
            sending.join()
        extractor.rehearse()
        with running(tmp_path, extractor.base_url) as backend:
            assert backend.texts("n", "dog", 0) == [REX]
            backend.ingest("n", 1, day)
            (item,) = backend.search("n", "dog", 1)
            assert (item.text, list(item.source_session_ids)) == (FIDO, ["s1", "s2"])


def test_a_search_after_the_folder_of_memories_was_lost_is_refused(tmp_path: Path) -> None:
    with ModelServer(reply_of) as extractor:
        with running(tmp_path, extractor.base_url) as backend:
            backend.ingest("n", 0, session_saying("s1", "My dog is called Rex."))
        shutil.rmtree(tmp_path / "data" / "memories")
        with running(tmp_path, extractor.base_url) as backend:
            error = refused(lambda: backend.search("n", "dog", 0))
    assert code_of(error) is grpc.StatusCode.FAILED_PRECONDITION
    assert "Reset the namespace" in message_of(error)


def test_it_connects_only_to_loopback_and_writes_only_to_its_data_folder(tmp_path: Path) -> None:
    guard = (
        "import sys, os\n"
        "def block_network(event, args):\n"
        "    host = args[1][0] if event == 'socket.connect' and isinstance(args[1], tuple) else None\n"
        "    host = args[0] if event == 'socket.getaddrinfo' else host\n"
        "    if host not in (None, '', '127.0.0.1', '::1', 'localhost', '0.0.0.0'):\n"
        "        os.write(2, f'NETWORK {event} {host}\\n'.encode()); os._exit(9)\n"
        "sys.addaudithook(block_network)\n"
    )
    tracing = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "key", "LANGCHAIN_TRACING_V2": "true"}
    with (
        ModelServer(reply_of) as extractor,
        running(tmp_path, extractor.base_url, code=guard, settings=tracing) as backend,
    ):
        backend.ingest("n", 0, session_saying("s1", "My dog is called Rex."))
        backend.ingest("n", 1, session_saying("s2", "My dog is called Fido.", day=1))
        assert backend.texts("n", "dog", 1) == [FIDO]
        backend.process.terminate()
        assert backend.process.wait(timeout=20) == 0
    assert "NETWORK" not in (tmp_path / "stderr.log").read_text()
    for name in ("home", "tmp", "current"):
        assert list((tmp_path / name).rglob("*")) == []


def _until_answered(ask: Callable[[], list[str]]) -> list[str]:
    """Return the answer once the previous call has ended: until then the namespace is locked (ABORTED)."""
    give_up_at = time.monotonic() + 20
    while True:
        try:
            return ask()
        except grpc.RpcError as error:
            assert code_of(error) is grpc.StatusCode.ABORTED and time.monotonic() < give_up_at
            time.sleep(0.05)
