"""Tests a backend as a process: flags, health, reflection, TLS, token, signals, and days that survive a kill."""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from memarena_backend import Security, run_backend
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto import memory_backend_pb2_grpc as pb_grpc

from tests.backends.support import (
    Served,
    Verbatim,
    code_of,
    connect,
    launch,
    make_day,
    make_query,
    make_session,
    message_of,
    serve,
)

BM25 = "memarena_backend_bm25"
MANY = [pb.Option(key="k", value="100000")]


def health_of(channel: grpc.Channel, service: str) -> int:
    stub = health_pb2_grpc.HealthStub(channel)
    return int(stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=30).status)


def test_health_answers_for_the_server_and_the_service_only(served: Served) -> None:
    for service in ("", "memarena.v1.MemoryBackend"):
        assert health_of(served.channel, service) == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as caught:
        health_of(served.channel, "memarena.v1.Other")
    assert code_of(caught.value) is grpc.StatusCode.NOT_FOUND


def test_reflection_lists_the_contract(served: Served) -> None:
    services = ProtoReflectionDescriptorDatabase(served.channel).get_services()
    assert {"memarena.v1.MemoryBackend", "grpc.health.v1.Health"} <= set(services)


def test_describe_is_complete_and_always_the_same(served: Served) -> None:
    first = served.stub.Describe(pb.DescribeRequest(), timeout=30)
    assert (first.name, first.version, first.contract_version) == ("verbatim", "1", "1.2")
    assert first.kind == pb.BACKEND_KIND_COMPETITOR
    assert list(first.digest_versions) == [1]
    assert list(first.capabilities) == [pb.CAPABILITY_PROVENANCE, pb.CAPABILITY_DURABLE]
    served.ingest(make_day("n1", 0))
    assert served.stub.Describe(pb.DescribeRequest(), timeout=30) == first


def test_with_a_token_only_health_answers_without_it(tmp_path: Path) -> None:
    with serve(Verbatim(), tmp_path, Security(bearer_token="right")) as served:
        assert health_of(served.channel, "") == health_pb2.HealthCheckResponse.SERVING
        for value in ("", "Bearer wrong", "right"):
            metadata = (("authorization", value),) if value else None
            with pytest.raises(grpc.RpcError) as caught:
                served.stub.Describe(pb.DescribeRequest(), timeout=30, metadata=metadata)
            assert code_of(caught.value) is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as caught:
            served.ingest(make_day("n1", 0))
        assert code_of(caught.value) is grpc.StatusCode.UNAUTHENTICATED
        token = (("authorization", "Bearer right"),)
        assert served.stub.Ingest(iter(make_day("n1", 0)), timeout=30, metadata=token).visible_through_day == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate of this test")
def test_tls_from_the_command_line(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    with launch(BM25, tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as backend:
        port = backend.address.rpartition(":")[2]
        credentials = grpc.ssl_channel_credentials(cert.read_bytes())
        with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
            assert pb_grpc.MemoryBackendStub(channel).Describe(pb.DescribeRequest(), timeout=10).name == "bm25"
        with connect(backend.address) as plain, pytest.raises(grpc.RpcError):
            plain.stub.Describe(pb.DescribeRequest(), timeout=2)


def program_fails(*arguments: str) -> list[str]:
    """Lines on standard error of a program that must not start."""
    command = [sys.executable, "-m", BM25, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    return result.stderr.splitlines()


def test_a_port_in_use_is_one_line_and_exit_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy_socket:
        listen = f"127.0.0.1:{busy_socket.getsockname()[1]}"
        lines = program_fails("--listen", listen, "--data-dir", str(tmp_path))
        assert lines == [f"error: --listen {listen}: Address already in use"]


def test_an_address_file_that_cannot_be_written_ends_the_program(tmp_path: Path) -> None:
    file = str(tmp_path / "no" / "file")
    *_, line = program_fails("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--address-file", file)
    assert line == f"error: --address-file {file}: No such file or directory"


def test_what_a_backend_cannot_start_with_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    listen, data = ["--listen", "127.0.0.1:0"], ["--data-dir", str(tmp_path / "data")]
    for arguments, says in (
        (["--listen", "localhost", *data], "--listen localhost: expected HOST:PORT"),
        (["--listen", "127.0.0.1:70000", *data], "--listen 127.0.0.1:70000: expected HOST:PORT"),
        (listen, "the following arguments are required: --data-dir"),
        ([*listen, *data, "--log-level", "loud"], "--log-level"),
        ([*listen, *data, "--tls-cert", str(empty)], "--tls-cert and --tls-key go together"),
        ([*listen, *data, "--tls-cert", str(empty), "--tls-key", str(empty)], "--listen 127.0.0.1:0: cannot listen"),
        ([*listen, *data, "--bearer-token-file", str(tmp_path / "no")], "No such file or directory"),
        ([*listen, *data, "--bearer-token-file", str(empty)], "the file is empty"),
        ([*listen, "--data-dir", str(empty)], f"--data-dir {empty}"),
    ):
        assert run_backend(lambda _: Verbatim(), arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert says in line


def test_a_distribution_with_several_memories_needs_to_be_told_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memories = {"one": lambda _: Verbatim(), "two": lambda _: Verbatim()}
    for arguments in ([], ["--variant", "three"]):
        assert run_backend(memories, ["--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), *arguments]) == 2
        assert "--variant" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_backend_within_two_seconds_also_with_calls_in_flight(
    tmp_path: Path, number: signal.Signals
) -> None:
    with launch(BM25, tmp_path) as backend, connect(backend.address) as client:
        client.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
        release = threading.Event()

        def stalled() -> Iterator[pb.IngestRequest]:
            yield from make_day("n1", 1)[:1]
            release.wait(10)

        call = client.stub.Ingest.future(stalled(), timeout=20)
        time.sleep(0.1)
        started = time.monotonic()
        backend.process.send_signal(number)
        assert backend.process.wait(timeout=10) == 0
        assert time.monotonic() - started < 2
        release.set()
        with pytest.raises(grpc.RpcError):
            call.result()
        assert "Traceback" not in backend.log_path.read_text()


def test_a_fault_of_the_memory_leaves_its_trace_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Verbatim):
        def forget(self, namespace: str) -> None:
            raise KeyError("why")

    with serve(Faulty(), tmp_path) as served, pytest.raises(grpc.RpcError) as caught:
        served.reset("n1")
    assert code_of(caught.value) is grpc.StatusCode.INTERNAL
    assert message_of(caught.value) == "KeyError: 'why'"
    assert "in forget" in caplog.text


def test_a_backend_killed_in_the_middle_of_a_day_has_the_whole_days_and_nothing_of_that_one(tmp_path: Path) -> None:
    days = [make_day("n1", day, [make_session(f"s{day}", [f"boat {day}"] * 3, day=day)]) for day in range(4)]
    with launch(BM25, tmp_path) as backend, connect(backend.address) as client:
        for day in days[:3]:
            client.ingest(day)
        release = threading.Event()

        def half() -> Iterator[pb.IngestRequest]:
            yield from days[3][:2]
            release.wait(10)

        call = client.stub.Ingest.future(half(), timeout=20)
        time.sleep(0.2)
        backend.kill()
        release.set()
        with pytest.raises(grpc.RpcError):
            call.result()
    with launch(BM25, tmp_path) as backend, connect(backend.address) as client:
        response = client.search(make_query("n1", "boat", 2, options=MANY))
        assert response.visible_through_day == 2
        assert sorted(item.text for item in response.items) == sorted(
            f"{name}: boat {day}" for day in range(3) for name in ("Maya Chen", "Omar Haddad", "Maya Chen")
        )
        with pytest.raises(grpc.RpcError) as caught:
            client.search(make_query("n1", "boat", 3))
        assert code_of(caught.value) is grpc.StatusCode.FAILED_PRECONDITION
        assert [client.ingest(day).replayed for day in days] == [True, True, True, False]
        assert len(client.search(make_query("n1", "boat", 3, options=MANY)).items) == 12


def test_a_backend_killed_at_any_moment_keeps_every_day_it_confirmed(tmp_path: Path) -> None:
    """Days are sent as fast as they go while the backend is killed; at most the day in flight may be there too."""

    def frames(day: int) -> list[pb.IngestRequest]:
        return make_day("n1", day, [make_session(f"s{day}", [f"boat d{day}"] * 5, day=day)], batch_id=f"b{day}")

    moments = random.Random(20250101)
    confirmed = -1
    for _ in range(3):
        with launch(BM25, tmp_path) as backend, connect(backend.address) as client:
            killer = threading.Timer(moments.uniform(0.05, 0.3), backend.kill)
            killer.start()
            with pytest.raises(grpc.RpcError):
                while True:
                    client.ingest(frames(confirmed + 1))
                    confirmed += 1
            killer.join()
        with launch(BM25, tmp_path) as backend, connect(backend.address) as client:
            response = client.ingest(frames(confirmed))
            assert response.replayed
            last = response.visible_through_day
            assert last in (confirmed, confirmed + 1)
            items = client.search(make_query("n1", "boat", last, options=MANY)).items
            assert [sum(item.text.endswith(f" d{day}") for item in items) for day in range(last + 1)] == [5] * (
                last + 1
            )
            confirmed = last
