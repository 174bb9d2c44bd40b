"""Tests MemSearch over gRPC: search by meaning and words, atomic days, separate namespaces, named failures."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import psutil
import pytest
from memarena_backend import ServeError
from memarena_backend_memsearch.settings import Settings, read_settings
from memarena_proto import memory_backend_pb2 as pb
from pydantic import JsonValue

from tests.backends.support import (
    Served,
    code_of,
    connect,
    launch,
    make_day,
    make_query,
    make_session,
    message_of,
    serve,
)
from tests.support.model_script import Fault, Script
from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from memarena_backend_memsearch import MemSearchMemory

MODULE = "memarena_backend_memsearch"


def memsearch(data: Path, settings: Settings | None = None) -> MemSearchMemory:
    """Its libraries take seconds to import, which every process of tests would do that collects this file."""
    from memarena_backend_memsearch import MemSearchMemory

    return MemSearchMemory(data, settings) if settings is not None else MemSearchMemory(data)


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with ModelServer(model="null-embedder") as running:
        yield running


@pytest.fixture
def served(tmp_path: Path, endpoint: ModelServer) -> Iterator[Served]:
    with serve(memsearch(tmp_path / "data", settings_for(endpoint)), tmp_path / "data") as running:
        yield running


def settings_for(endpoint: ModelServer) -> Settings:
    return Settings(embedding_url=endpoint.base_url, embedding_model="null-embedder")


def embedded_texts(endpoint: ModelServer) -> list[str]:
    texts: list[str] = []
    for request in endpoint.received:
        inputs = request.body["input"]
        assert isinstance(inputs, list)
        texts += map(str, inputs)
    return texts


def test_the_model_inside_finds_by_meaning_and_names_its_sources(tmp_path: Path) -> None:
    """No endpoint: the embedded model finds a session that shares no word with the question."""
    sessions = [
        make_session("s1", ["My puppy chewed the sofa again", "Oh no, bad dog"]),
        make_session("s2", ["The mortgage rate went up", "So did mine"]),
        make_session("s3", ["Rain all week", "I stayed in"]),
    ]
    with serve(memsearch(tmp_path), tmp_path) as served:
        served.ingest(make_day("n", 0, sessions))
        items = served.search(make_query("n", "animals at home", 0)).items
    assert len(items) == 3
    assert (list(items[0].source_session_ids), list(items[0].source_turn_ids)) == (["s1"], ["s1.0", "s1.1"])
    assert items[0].text.split("\n")[0] == "Wednesday 1 January 2025, 09:00 to 09:02"
    assert "**Maya Chen** 09:00: My puppy chewed the sofa again" in items[0].text
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)


def test_nothing_of_ours_is_in_what_a_reader_sees(served: Served) -> None:
    served.ingest(make_day("n", 0, [make_session("sess-77", ["apple pie", "yum"])]))
    (text,) = served.find("n", "apple", 0)
    assert "sess-77" not in text
    assert "<!--" not in text


def test_namespaces_never_meet_even_if_one_name_begins_with_another(served: Served) -> None:
    for name in ("u1", "u10", "u_1", "ux1"):
        served.ingest(make_day(name, 0, [make_session("s", [f"the secret of {name} is out"])]))
    for name in ("u1", "u10", "u_1", "ux1"):
        (text,) = served.find(name, "secret", 0)
        assert f"the secret of {name} is out" in text


def test_a_replayed_day_changes_nothing_and_embeds_nothing(served: Served, endpoint: ModelServer) -> None:
    frames = make_day("n", 0, [make_session("s", ["apple pie", "yum"])])
    served.ingest(frames)
    before = embedded_texts(endpoint)
    assert served.ingest(frames).replayed
    assert embedded_texts(endpoint) == before
    assert len(served.find("n", "apple", 0)) == 1


def test_a_day_without_words_is_no_fault(served: Served) -> None:
    served.ingest(make_day("n", 0))
    assert served.find("n", "anything", 0) == []
    served.ingest(make_day("n", 1, [make_session("s", ["apple"], day=1)]))
    assert len(served.find("n", "apple", 1)) == 1


def test_the_first_day_of_a_namespace_waits_for_no_poll(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """pymilvus asks for the state of an index half a second after it was made; Milvus Lite has it ready at once."""

    def wait(*_: object, **__: object) -> None:
        raise AssertionError("waited for an index")

    monkeypatch.setattr("pymilvus.client.grpc_handler.GrpcHandler.wait_for_creating_index", wait)
    served.ingest(make_day("n", 0, [make_session("s", ["apple pie", "yum"])]))
    assert len(served.find("n", "apple", 0)) == 1


def test_bounds_of_a_search_hold(served: Served) -> None:
    served.ingest(make_day("n", 0, [make_session(f"s{n}", [f"apple number {n} " + "pie " * 50]) for n in range(15)]))
    assert len(served.find("n", "apple", 0)) == 10
    assert len(served.find("n", "apple", 0, max_items=3)) == 3
    assert len(served.find("n", "apple", 0, options=[pb.Option(key="k", value="12")])) == 12
    assert sum(len(text.encode()) for text in served.find("n", "apple", 0, max_context_tokens=100)) <= 400


def test_texts_at_the_edge_of_what_milvus_takes(served: Served) -> None:
    """A question of 64 KiB, a turn of 256 KiB, every script, lines that look like headings, comments, twins."""
    odd = [
        "# heading?\n## and another",
        "<!-- a comment -->",
        "日本語のテキスト 😀 עברית",
        "same",
        "same",
        "x" * 262_144,
    ]
    served.ingest(make_day("n", 0, [make_session("s", odd)]))
    for question in ("q" * 65_536, "語" * 21_845, '"quoted" \\ and % _', "?", "日本語"):
        assert served.find("n", question, 0)
    response = served.search(
        make_query("n", "日本語のテキスト", 0, max_items=500, options=[pb.Option(key="k", value="500")])
    )
    assert {turn for item in response.items for turn in item.source_turn_ids} == {
        f"s.{number}" for number in range(len(odd))
    }


def test_reset_leaves_nothing_behind(served: Served, tmp_path: Path) -> None:
    served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
    served.ingest(make_day("other", 0, [make_session("s", ["pear"])]))
    assert list(folder_with(tmp_path, "apple"))
    served.reset("n")
    assert not list(folder_with(tmp_path, "apple"))
    with pytest.raises(grpc.RpcError) as failure:
        served.find("n", "apple", 0)
    assert code_of(failure.value) is grpc.StatusCode.NOT_FOUND
    served.ingest(make_day("n", 0, [make_session("s", ["cherry"])], batch_id="again"))
    assert len(served.find("n", "apple", 0)) == 1, "only what was ingested since"
    assert "pear" in served.find("other", "pear", 0)[0]


def folder_with(tmp_path: Path, word: str) -> Iterator[Path]:
    return (path for path in tmp_path.rglob("*.md") if word in path.read_text())


def test_an_embedding_that_fails_half_way_leaves_no_part_of_the_day(served: Served, endpoint: ModelServer) -> None:
    """The second batch of texts fails: the day is not there, the one before is, and the same day can come again."""
    served.ingest(make_day("n", 0, [make_session("before", ["apple"])]))
    day = make_day("n", 1, [make_session(f"s{n}", [f"pear {n}"], day=1) for n in range(40)])
    endpoint.vectors = fail_after(endpoint, 20)
    with pytest.raises(grpc.RpcError) as failure:
        served.ingest(day)
    assert code_of(failure.value) is grpc.StatusCode.UNAVAILABLE
    assert "null-embedder failed" in message_of(failure.value)
    assert "as scripted" in message_of(failure.value)
    endpoint.vectors = None
    texts = served.find("n", "pear apple", 0, max_items=50, options=[pb.Option(key="k", value="50")])
    assert ["apple" in text for text in texts] == [True]
    served.ingest(day)
    assert len(served.find("n", "pear", 1, max_items=50, options=[pb.Option(key="k", value="50")])) == 41


def fail_after(endpoint: ModelServer, count: int) -> Callable[[Mapping[str, JsonValue]], Script]:
    already = len(embedded_texts(endpoint))

    def script(body: Mapping[str, JsonValue]) -> Script:
        return Script(status=503 if len(embedded_texts(endpoint)) > already + count else 200)

    return script


@pytest.mark.parametrize(("fault", "reason"), [("status", "as scripted"), ("malformed", "gave no embeddings")])
def test_a_search_whose_embedding_fails_is_an_error_and_not_an_empty_result(
    served: Served, endpoint: ModelServer, fault: Fault, reason: str
) -> None:
    served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
    endpoint.script = Script(fault=fault)
    with pytest.raises(grpc.RpcError) as failure:
        served.find("n", "apple", 0)
    assert code_of(failure.value) is grpc.StatusCode.UNAVAILABLE
    assert reason in message_of(failure.value)


def test_a_killed_ingest_is_forgotten_and_the_rest_found_without_embedding_it_again(
    tmp_path: Path, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL while the second day is half embedded; after the restart the first day is there, the second is not."""
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_URL", endpoint.base_url)
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_MODEL", "null-embedder")
    day = make_day("n", 1, [make_session(f"s{n}", [f"pear {n}"], day=1) for n in range(40)])
    with launch(MODULE, tmp_path) as backend, connect(backend.address) as served:
        served.ingest(make_day("n", 0, [make_session("before", ["apple"])]))
        endpoint.vectors = stall_after(endpoint, 20)
        ingesting = threading.Thread(target=swallow_rpc_error, args=(served, day))
        ingesting.start()
        wait_until(lambda: len(embedded_texts(endpoint)) > 20)
        backend.kill()
        ingesting.join(timeout=20)
    endpoint.vectors = None
    before = len(embedded_texts(endpoint))
    with launch(MODULE, tmp_path) as backend, connect(backend.address) as served:
        texts = served.find("n", "pear apple", 0, options=[pb.Option(key="k", value="50")])
        assert ["apple" in text for text in texts] == [True]
        again = embedded_texts(endpoint)[before:]
        assert "pear apple" in again
        assert not [text for text in again if "**" in text], "no passage was embedded again"
        assert not served.ingest(day).replayed
        assert len(served.find("n", "pear", 1, options=[pb.Option(key="k", value="50")])) == 41


def test_nothing_is_left_among_the_temporary_files(
    tmp_path: Path, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's logs are the backend's; what a killed backend could not take away, the next one does."""
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_URL", endpoint.base_url)
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_MODEL", "null-embedder")
    with tempfile.TemporaryDirectory() as folder:  # not below tmp_path, whose name is too long for a socket
        monkeypatch.setenv("TMPDIR", folder)
        with launch(MODULE, tmp_path) as backend, connect(backend.address) as served:
            served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
            (engine,) = psutil.Process(backend.process.pid).children()
            kill(engine.pid)
            backend.kill()
        assert [path.is_socket() for path in Path(folder).iterdir()] == [True]
        with launch(MODULE, tmp_path) as backend, connect(backend.address) as served:
            assert len(served.find("n", "apple", 0)) == 1
            backend.process.terminate()
            backend.process.wait(timeout=20)
        assert list(Path(folder).iterdir()) == []


def stall_after(endpoint: ModelServer, count: int) -> Callable[[Mapping[str, JsonValue]], Script]:
    already = len(embedded_texts(endpoint))

    def script(body: Mapping[str, JsonValue]) -> Script:
        return Script(delay_s=5.0 if len(embedded_texts(endpoint)) > already + count else 0.0)

    return script


def swallow_rpc_error(served: Served, frames: list[pb.IngestRequest]) -> None:
    with pytest.raises(grpc.RpcError):
        served.ingest(frames)


def wait_until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_the_gateways_model_is_used_when_the_harness_offers_one(tmp_path: Path, endpoint: ModelServer) -> None:
    """With the token of the call, and with what the model's card wants in front of a text."""
    access = pb.ModelAccess(
        base_url=endpoint.base_url,
        token="t-1",
        models=[pb.Model(name="nomic-embed-text", role=pb.MODEL_ROLE_EMBEDDER)],
    )
    frames = make_day("n", 0, [make_session("s", ["apple"])])
    frames[0].header.model_access.CopyFrom(access)
    with serve(memsearch(tmp_path), tmp_path) as served:
        served.ingest(frames)
        assert len(served.find("n", "fruit", 0, model_access=access)) == 1
        assert {request.headers["Authorization"] for request in endpoint.received} == {"Bearer t-1"}
        assert {request.body["model"] for request in endpoint.received} == {"nomic-embed-text"}
        texts = embedded_texts(endpoint)
        assert texts[-1] == "search_query: fruit"
        assert next(text for text in texts if "apple" in text).startswith("search_document: ## ")
        with pytest.raises(grpc.RpcError) as failure:
            served.find("n", "fruit", 0)
    assert code_of(failure.value) is grpc.StatusCode.UNAVAILABLE
    assert "nomic-embed-text, which this call gives no access to" in message_of(failure.value)


def test_an_index_of_another_model_is_refused(tmp_path: Path, endpoint: ModelServer) -> None:
    data = tmp_path / "data"
    with serve(memsearch(data, settings_for(endpoint)), data) as served:
        served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
    other = Settings(embedding_url=endpoint.base_url, embedding_model="other-model")
    with serve(memsearch(data, other), data) as served:
        with pytest.raises(grpc.RpcError) as failure:
            served.find("n", "apple", 0)
        assert code_of(failure.value) is grpc.StatusCode.FAILED_PRECONDITION
        assert "indexed with null-embedder" in message_of(failure.value)
        served.reset("n")
        served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
        assert len(served.find("n", "apple", 0)) == 1


def test_an_index_that_was_lost_is_made_again_from_the_days(tmp_path: Path, endpoint: ModelServer) -> None:
    data = tmp_path / "data"
    with serve(memsearch(data, settings_for(endpoint)), data) as served:
        served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
    (data / "milvus.db").unlink()
    with serve(memsearch(data, settings_for(endpoint)), data) as served:
        assert len(served.find("n", "apple", 0)) == 1


def test_a_user_without_a_home_can_ingest(
    tmp_path: Path, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container with a read-only root, where Milvus Lite otherwise fails at its first collection."""
    monkeypatch.setenv("HOME", str(tmp_path / "not there"))
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_URL", endpoint.base_url)
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_MODEL", "null-embedder")
    with launch(MODULE, tmp_path) as backend, connect(backend.address) as served:
        served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
        assert len(served.find("n", "apple", 0)) == 1


def engine_instead(folder: Path, script: str) -> None:
    """A program in the place of Milvus Lite's own; REAL in it starts that one."""
    library = Path(str(distribution("milvus-lite").locate_file("milvus_lite/lib")))
    real = f'LD_LIBRARY_PATH="{library}" exec "{library}/milvus" "$@"'
    program = folder / "milvus"
    program.write_text(f"#!/bin/sh\n{script.replace('REAL', real)}\n", encoding="utf-8")
    program.chmod(0o755)


def kill(process_id: int) -> None:
    """On return all threads of the process have ended; its parent may not have asked for its status yet."""
    os.kill(process_id, signal.SIGKILL)
    threads = Path(f"/proc/{process_id}/task")
    wait_until(lambda: not threads.exists() or all(map(has_ended, threads.iterdir())))


def has_ended(thread: Path) -> bool:
    try:
        return (thread / "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def test_an_engine_that_is_slow_to_listen_is_waited_for(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library itself connects after half a second, once."""
    engine_instead(tmp_path, "sleep 1.5; REAL")
    monkeypatch.setenv("BIN_PATH", str(tmp_path))
    served.ingest(make_day("n", 0, [make_session("s", ["apple"])]))
    assert len(served.find("n", "apple", 0)) == 1


def test_no_call_comes_in_before_the_engine_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a slow start of the engine is time of the first call, and in the end a failure that answers pay for."""
    engine_instead(tmp_path, "sleep 1.5; REAL")
    monkeypatch.setenv("BIN_PATH", str(tmp_path))
    with launch(MODULE, tmp_path), socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str((tmp_path / "data" / "milvus.db.sock").readlink()))


def test_an_engine_that_never_starts_ends_the_backend_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a run says that the memory did not come up, and asks it nothing."""
    engine_instead(tmp_path, "exit 1")
    monkeypatch.setenv("BIN_PATH", str(tmp_path))
    command = [sys.executable, "-m", MODULE, "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    error_lines = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert ended.returncode == 2
    assert len(error_lines) == 1
    assert "Milvus Lite did not start" in error_lines[0]
    assert "Traceback" not in ended.stderr


def test_an_engine_that_cannot_start_is_unavailable_and_the_next_try_may_succeed(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_instead(tmp_path, "exit 1")
    monkeypatch.setenv("BIN_PATH", str(tmp_path))
    day = make_day("n", 0, [make_session("s", ["apple"])])
    with pytest.raises(grpc.RpcError) as failure:
        served.ingest(day)
    assert code_of(failure.value) is grpc.StatusCode.UNAVAILABLE
    assert "Milvus Lite did not start" in message_of(failure.value)
    monkeypatch.delenv("BIN_PATH")
    served.ingest(day)
    assert len(served.find("n", "apple", 0)) == 1


def test_an_engine_that_dies_is_started_again_and_loses_nothing(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "engine.pid"
    engine_instead(tmp_path, f'echo $$ > "{note}"; REAL')
    monkeypatch.setenv("BIN_PATH", str(tmp_path))
    for namespace in ("m", "n"):
        served.ingest(make_day(namespace, 0, [make_session("s", ["apple"])]))
    kill(int(note.read_text()))
    assert len(served.find("n", "apple", 0)) == 1
    served.ingest(make_day("m", 1, [make_session("t", ["apple pie"], day=1)]))
    assert len(served.find("m", "apple", 1)) == 2
    kill(int(note.read_text()))
    served.reset("n")
    assert len(served.find("m", "apple", 1)) == 2


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("EMBEDDING_URL", "http://127.0.0.1:1/v1", "MEMSEARCH_EMBEDDING_URL and MEMSEARCH_EMBEDDING_MODEL go together"),
        ("MILVUS_URI", "milvus:19530", "MEMSEARCH_MILVUS_URI: expected an http(s) URL, got 'milvus:19530'"),
        ("EMBEDDING_PREFIXES", "maybe", "MEMSEARCH_EMBEDDING_PREFIXES: expected on or off, got 'maybe'"),
        ("MAX_CHUNK_CHARS", "12", "MEMSEARCH_MAX_CHUNK_CHARS: expected 200 to 8000, got '12'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name: str, value: str, complaint: str) -> None:
    with pytest.raises(ServeError) as failure:
        read_settings({f"MEMSEARCH_{name}": value})
    assert str(failure.value) == complaint
