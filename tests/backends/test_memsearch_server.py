"""MemSearch before a Milvus server of its own instead of Milvus Lite within its process (MEMSEARCH_MILVUS_URI).

The server is the C++ engine of Milvus Lite 2.5, which listens on a port if it is told to: the same protocol, one node.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

import grpc
import pytest
from memarena.conformance import Settings as SuiteSettings
from memarena.conformance import result_line, run_suite
from memarena_backend_memsearch import MemSearchMemory
from memarena_backend_memsearch.settings import Settings
from pymilvus import MilvusClient  # type: ignore[import-untyped]

from tests.backends.support import Served, code_of, connect, launch, make_day, make_session, message_of, serve
from tests.support.model_server import ModelServer

MODULE = "memarena_backend_memsearch"
START_TIMEOUT_S = 60.0


@contextmanager
def milvus_server(folder: Path, port: int) -> Iterator[str]:
    """A Milvus server on a port, with what it had in the folder before; its URI."""
    folder.mkdir(exist_ok=True)
    libraries = Path(str(distribution("milvus-lite").locate_file("milvus_lite"))) / "lib"
    command = [str(libraries / "milvus"), str(folder / "server.db"), f"127.0.0.1:{port}", "ERROR"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "GLOG_log_dir": str(folder)}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        give_up_at = time.monotonic() + START_TIMEOUT_S
        while not listens(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < give_up_at, "the Milvus server did not start"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with ModelServer(model="null-embedder") as running:
        yield running


@pytest.fixture
def uri(tmp_path: Path) -> Iterator[str]:
    with milvus_server(tmp_path / "server", free_port()) as running:
        yield running


def settings_for(endpoint: ModelServer, uri: str) -> Settings:
    return Settings(embedding_url=endpoint.base_url, embedding_model="null-embedder", milvus_uri=uri)


def collections(uri: str) -> list[str]:
    client = MilvusClient(uri)
    try:
        return sorted(client.list_collections())
    finally:
        client.close()


def test_namespaces_are_collections_of_the_server_and_a_reset_drops_them(
    tmp_path: Path, endpoint: ModelServer, uri: str
) -> None:
    data = tmp_path / "data"
    names = ("u1", "u10", "u_1", "ux1")
    with serve(MemSearchMemory(data, settings_for(endpoint, uri)), data) as served:
        for name in names:
            served.ingest(make_day(name, 0, [make_session("s", [f"the secret of {name} is out"])]))
        assert len(collections(uri)) == len(names)
        for name in names:
            (text,) = served.find(name, "secret", 0)
            assert f"the secret of {name} is out" in text
        served.reset("u1")
        assert len(collections(uri)) == len(names) - 1
        assert len(served.find("u10", "secret", 0)) == 1
    assert not (data / "milvus.db").exists()


def test_a_killed_backend_finds_its_days_on_the_server_again(
    tmp_path: Path, endpoint: ModelServer, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSEARCH_MILVUS_URI", uri)
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_URL", endpoint.base_url)
    monkeypatch.setenv("MEMSEARCH_EMBEDDING_MODEL", "null-embedder")
    with launch(MODULE, tmp_path) as backend, connect(backend.address) as served:
        served.ingest(make_day("n", 0, [make_session("s", ["apple pie"])]))
        backend.kill()
    embedded = len(endpoint.received)
    with launch(MODULE, tmp_path) as backend, connect(backend.address) as served:
        (text,) = served.find("n", "apple", 0)
        assert "apple pie" in text
        served.ingest(make_day("n", 1, [make_session("s1", ["apple cake"], day=1)]))
        assert len(served.find("n", "apple", 1)) == 2
    passages = [request for request in endpoint.received[embedded:] if "apple pie" in str(request.body["input"])]
    assert passages == [], "what the server still has is not embedded again"


def test_a_server_that_is_away_is_said_and_used_again_when_it_is_back(tmp_path: Path, endpoint: ModelServer) -> None:
    port, data = free_port(), tmp_path / "data"
    with milvus_server(tmp_path / "server", port) as uri:
        memory = MemSearchMemory(data, settings_for(endpoint, uri))
        with serve(memory, data) as served:
            served.ingest(make_day("n", 0, [make_session("s", ["apple pie"])]))
    with serve(MemSearchMemory(data, settings_for(endpoint, uri)), data) as served:
        with pytest.raises(grpc.RpcError) as failure:
            served.find("n", "apple", 0)
        assert code_of(failure.value) is grpc.StatusCode.UNAVAILABLE
        assert "Milvus failed" in message_of(failure.value)
        with milvus_server(tmp_path / "server", port):
            assert len(found_at_last(served)) == 1


def found_at_last(served: Served) -> list[str]:
    """What is found once UNAVAILABLE is over: the client's library waits before it tries a server again."""
    give_up_at = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return served.find("n", "apple", 0)
        except grpc.RpcError as error:
            assert code_of(error) is grpc.StatusCode.UNAVAILABLE
            assert time.monotonic() < give_up_at, message_of(error)
            time.sleep(0.2)


def test_the_suite_passes_where_the_store_decides(tmp_path: Path, endpoint: ModelServer, uri: str) -> None:
    """What a server could do otherwise than Milvus Lite: readiness, replays, namespaces, finding and forgetting."""
    data = tmp_path / "data"
    only = ["ing.ready", "ing.replay", "src.finds", "idn.read-names", "rst"]
    with serve(MemSearchMemory(data, settings_for(endpoint, uri)), data) as served:
        result = run_suite(served.address, only=only, settings=SuiteSettings(timeout_s=120))
    assert [result_line(each) for each in result.results if each.status == "failed"] == []
    assert len(result.ids("passed")) >= 6
    assert "Milvus server" in result.described.version
