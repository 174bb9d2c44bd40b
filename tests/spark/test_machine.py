"""Tests ThisMachine, the real node: the kernel's files, a driver's library, servers over HTTP, the container daemon."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from memarena_spark import warm
from memarena_spark.facts import DeclaredOrder, Embedder, Image, Memory, ReaderServer, Unknown
from memarena_spark.machine import ThisMachine, host, images, services
from memarena_spark.machine.services import ask_embedder, ask_reader
from memarena_spark.plans import EmbedderSpec, ReaderServerSpec

from tests.support.model_server import ModelServer

# ------------------------------------------------------------------ this very machine


def test_this_machine_is_read_and_nothing_raises(tmp_path: Path) -> None:
    node = ThisMachine()
    identity = node.identity()
    assert identity.cpu_count == os.cpu_count()
    assert identity.memory_bytes > 2**28
    assert identity.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert isinstance(node.memory(), Memory)
    free = node.free_bytes(tmp_path / "not" / "yet")
    assert isinstance(free, int)
    assert free > 0
    assert isinstance(node.clock_synchronised(), bool | Unknown)
    assert isinstance(node.on_battery(), bool | Unknown)
    assert node.packages(["memarena", "no-such-package"])["no-such-package"] is None
    busy = node.cpu_busy_percent()
    assert isinstance(busy, float)
    assert 0 <= busy <= 100


# ------------------------------------------------------------------ the kernel's files


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_memory_and_swap_are_in_bytes(tmp_path: Path) -> None:
    root = write(tmp_path, proc__meminfo="MemTotal: 100 kB\nMemAvailable: 60 kB\nSwapTotal: 20 kB\nSwapFree: 15 kB")
    assert host.memory(root) == Memory(available_bytes=60 * 1024, swap_used_bytes=5 * 1024)


def test_memory_missing_from_meminfo_is_unknown(tmp_path: Path) -> None:
    memory = host.memory(write(tmp_path, proc__meminfo="MemTotal: 100 kB"))
    assert isinstance(memory, Unknown)
    assert "has no MemAvailable" in memory.unknown


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, False),
        ({"BAT0__type": "Battery", "BAT0__status": "Charging", "AC__type": "Mains", "AC__online": "1"}, False),
        ({"BAT0__type": "Battery", "BAT0__status": "Discharging"}, True),
        ({"AC__type": "Mains", "AC__online": "0"}, True),
        ({"mouse__type": "Battery", "mouse__status": "Discharging", "mouse__scope": "Device"}, False),
    ],
)
def test_a_battery_that_feeds_the_node_is_seen(files: dict[str, str], expected: bool, tmp_path: Path) -> None:
    write(tmp_path / "sys/class/power_supply", **files)
    assert host.on_battery(tmp_path) is expected


def test_every_governor_is_named_once(tmp_path: Path) -> None:
    assert isinstance(host.governors(tmp_path), Unknown)
    for number, name in enumerate(("performance", "powersave", "performance")):
        write(tmp_path / f"sys/devices/system/cpu/cpu{number}/cpufreq", scaling_governor=name)
    assert host.governors(tmp_path) == ("performance", "powersave")


def test_temperatures_are_read_from_both_folders_of_the_kernel(tmp_path: Path) -> None:
    assert isinstance(host.temperatures(tmp_path), Unknown)
    write(tmp_path / "sys/class/hwmon/hwmon0", name="soc", temp1_input="51500", temp1_label="die")
    write(tmp_path / "sys/class/thermal/thermal_zone0", type="acpitz", temp="48000")
    assert host.temperatures(tmp_path) == {"soc.die.temperature": 51.5, "thermal_zone0.acpitz": 48.0}


@pytest.mark.parametrize(
    ("state", "status", "expected"), [(0, 0, True), (5, 0x40, False), (0, 0x40, False), (5, 0, False)]
)
def test_an_unsynchronised_clock_is_detected(
    state: int, status: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """adjtimex(2): TIME_ERROR is 5, STA_UNSYNC is 0x40."""

    def adjtimex(buffer: object) -> int:
        memoryview(buffer).cast("B")[40:44] = status.to_bytes(4, "little")  # type: ignore[arg-type]
        return state

    library = SimpleNamespace(adjtimex=adjtimex)
    monkeypatch.setattr("memarena_spark.machine.host.ctypes.CDLL", lambda *_, **__: library)
    assert host.clock_synchronised() is expected


# ------------------------------------------------------------------ servers


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def ollama(server: ModelServer, vram: int = 1000) -> EmbedderSpec:
    server.routes = {
        "/api/version": {"version": "0.12.6"},
        "/api/embed": {"model": "bge-m3", "embeddings": [[0.1, 0.2]]},
        "/api/ps": {"models": [{"name": "bge-m3:latest", "size": 1000, "size_vram": vram}]},
    }
    return EmbedderSpec(url=server.server_url, model="bge-m3")


def test_ollama_reports_version_warm_embedding_time_and_the_models_device(server: ModelServer) -> None:
    embedder = ask_embedder(ollama(server, vram=700))
    assert isinstance(embedder, Embedder)
    assert (embedder.version, embedder.size_bytes, embedder.vram_bytes) == ("0.12.6", 1000, 700)
    assert 0 < embedder.warm_s < 5
    assert [each.route for each in server.received].count("/api/embed") == 2
    # The server is a thread of this process, so both have the same start.
    assert isinstance(embedder.started_at_unix, float)


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        ("/api/version", None, "/api/version answered 404"),
        ("/api/embed", {"embeddings": []}, "no embedding in the reply"),
        ("/api/embed", b"<html>", "is no JSON"),
        ("/api/ps", {"models": []}, "bge-m3 is not among the loaded models"),
        ("/api/ps", {"models": [{"name": "bge-m3-large", "size": 1, "size_vram": 1}]}, "is not among the loaded"),
        ("/api/ps", [], "no JSON object"),
    ],
)
def test_an_embedder_with_an_unexpected_reply_is_unknown(
    path: str, answer: object, reason: str, server: ModelServer
) -> None:
    spec = ollama(server)
    server.routes[path] = answer
    embedder = ask_embedder(spec)
    assert isinstance(embedder, Unknown)
    assert reason in embedder.unknown


def test_an_unreachable_server_is_unknown() -> None:
    embedder = ask_embedder(EmbedderSpec(url="http://127.0.0.1:9", model="bge-m3"))
    assert isinstance(embedder, Unknown)
    assert "cannot be reached" in embedder.unknown
    reader = ask_reader(ReaderServerSpec(url="http://127.0.0.1:9", model="m"))
    assert isinstance(reader, Unknown)
    assert "cannot be reached" in reader.unknown


@pytest.mark.parametrize("vram", [1000, 0])
def test_warming_up_reports_whether_the_model_is_on_the_gpu(
    vram: int, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = ollama(server, vram)
    assert warm.main(["--url", spec.url, "--model", spec.model]) == (0 if vram else 1)
    assert ("refused embedder-on-cpu" in capsys.readouterr().err) is (vram == 0)


def sglang(server: ModelServer, reply: object, route: str = "/server_info") -> ReaderServer | Unknown:
    server.routes = {
        "/v1/models": {"data": [{"id": "qwen"}]},
        route: {"model_path": "qwen", "version": "0.5.23", "disable_radix_cache": True, "context_length": 16384},
        "/v1/chat/completions": reply,
    }
    return ask_reader(ReaderServerSpec(url=server.server_url, model="qwen"))


def said(**message: object) -> object:
    return {"choices": [{"message": {"role": "assistant", **message}}]}


@pytest.mark.parametrize("route", ["/server_info", "/get_server_info"])
def test_sglang_is_read_by_either_of_its_routes(route: str, server: ModelServer) -> None:
    reader = sglang(server, said(content="Hello"), route)
    assert isinstance(reader, ReaderServer)
    assert (reader.kind, reader.probe_failure) == ("sglang", "")
    assert reader.details["disable_radix_cache"] == "True"
    assert reader.details["version"] == "0.5.23"


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (said(content=""), "the reply is empty"),
        (said(content=None, reasoning_content="Hm."), ""),
        ({"choices": []}, "the reply is empty"),
        ({"error": "x"}, "the reply is empty"),
        (None, "answered 404"),
    ],
)
def test_an_empty_reply_or_an_error_fails_the_readers_probe(reply: object, failure: str, server: ModelServer) -> None:
    reader = sglang(server, reply)
    assert isinstance(reader, ReaderServer)
    assert failure in reader.probe_failure
    assert bool(reader.probe_failure) is bool(failure)


METRICS = b"""# HELP sglang:http_requests_total Total number of HTTP requests by endpoint and method
# TYPE sglang:http_requests_total counter
sglang:http_requests_total{endpoint="/health",method="GET"} 12.0
sglang:http_requests_total{endpoint="/metrics",method="GET"} 5.0
sglang:num_requests_total{model_name="qwen"} 3.0
sglang:gen_throughput{model_name="qwen"} 81.5
"""


def test_sglangs_request_counters_exclude_the_request_that_reads_them(server: ModelServer) -> None:
    spec = ReaderServerSpec(url=f"{server.server_url}/v1", model="qwen")
    server.routes = {"/metrics": METRICS}
    assert ThisMachine().reader_counts(spec) == {
        'sglang:http_requests_total{endpoint="/health",method="GET"}': 12.0,
        'sglang:num_requests_total{model_name="qwen"}': 3.0,
    }


@pytest.mark.parametrize(("page", "reason"), [(None, "/metrics answered 404"), (b"up 1\n", "no counter of requests")])
def test_a_server_without_counters_is_unknown(page: bytes | None, reason: str, server: ModelServer) -> None:
    server.routes = {"/metrics": page}
    counts = ThisMachine().reader_counts(ReaderServerSpec(url=server.server_url, model="qwen"))
    assert isinstance(counts, Unknown)
    assert reason in counts.unknown


def test_a_server_on_all_addresses_is_distinguished_from_one_on_loopback() -> None:
    """A second socket at 127.0.0.2, which no server binds alone, imitates a server on 0.0.0.0."""
    with socket.create_server(("127.0.0.1", 0)) as alone:
        port = alone.getsockname()[1]
        url = f"http://localhost:{port}/v1"
        assert services.open_to_containers(url, in_container=False) is False
        with socket.create_server(("127.0.0.2", port)):
            assert services.open_to_containers(url, in_container=False) is True


def test_inside_a_container_the_host_is_the_first_address_of_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    address = SimpleNamespace(family=socket.AF_INET, address="172.20.0.5", netmask="255.255.0.0")
    monkeypatch.setattr("psutil.net_if_addrs", lambda: {"eth0": [address]})
    assert services.open_to_containers("http://172.20.0.1:30000", in_container=True) is True
    assert services.open_to_containers("http://172.20.0.3:30000", in_container=True) is False


def test_a_reader_with_a_key_gets_it() -> None:
    with ModelServer(api_key="secret") as server:
        spec = ReaderServerSpec(url=server.base_url, model=server.model, kind="other")
        with_key = ThisMachine(reader_api_key="secret").reader(spec)
        without = ThisMachine().reader(spec)
    assert isinstance(with_key, ReaderServer)
    assert with_key.probe_failure == ""
    assert isinstance(without, Unknown)
    assert "401" in without.unknown


# ------------------------------------------------------------------ containers

DIGEST = "sha256:" + "cd" * 32


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts a script named ``docker`` first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for variable in (images.DECLARED, images.ORDER):
        monkeypatch.delenv(variable, raising=False)

    def install(script: str) -> None:
        program = tmp_path / "docker"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return install


def test_the_digest_of_a_container_is_that_of_its_registry_else_its_image_s_id(docker: Callable[[str], None]) -> None:
    docker(f'case "$1" in container) echo sha256:{"ee" * 32};; *) echo \'["lmsysorg/sglang@{DIGEST}"]\';; esac')
    assert images.image_of("sglang") == Image(digest=DIGEST, source="docker")
    docker(f'case "$1" in container) echo sha256:{"ee" * 32};; *) echo "[]";; esac')
    assert images.image_of("sglang") == Image(digest="sha256:" + "ee" * 32, source="docker")


def test_an_image_that_is_not_running_has_a_digest_too(docker: Callable[[str], None]) -> None:
    docker(f'case "$5" in *Id*) [ "$3" = bm25:1 ] && echo sha256:{"ee" * 32};; *) echo "[]";; esac')
    assert images.image_of("image:bm25:1") == Image(digest="sha256:" + "ee" * 32, source="docker")
    assert isinstance(images.image_of("image:other"), Unknown)


def test_a_missing_container_is_unknown(docker: Callable[[str], None]) -> None:
    docker('echo "Error: No such object: sglang" >&2; exit 1')
    assert images.image_of("sglang") == Unknown(unknown="docker: Error: No such object: sglang")
    assert isinstance(images.container_started_at("sglang"), Unknown)


def test_the_start_of_a_container_has_microseconds(docker: Callable[[str], None]) -> None:
    docker("echo 2026-11-21T10:00:00.123456789Z")
    assert images.container_started_at("x") == pytest.approx(1795255200.123456, abs=1e-5)
    docker("echo soon")
    assert isinstance(images.container_started_at("x"), Unknown)


def test_inside_a_stack_the_order_of_starting_is_the_declared_one(
    docker: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    docker("exit 1")
    monkeypatch.setenv(images.ORDER, "ollama sglang")
    assert images.container_started_at("sglang") == DeclaredOrder(place=1)
    assert images.container_started_at("ollama") == DeclaredOrder(place=0)
    assert isinstance(images.container_started_at("other"), Unknown)


def test_inside_a_stack_the_compose_file_s_own_variable_tells_the_digests(
    docker: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    docker("exit 1")
    monkeypatch.setenv(images.DECLARED, f"ollama=ollama/ollama@sha256:{'00' * 32} sglang=lmsysorg/sglang@{DIGEST}")
    assert images.image_of("sglang") == Image(digest=DIGEST, source="declared")
    assert isinstance(images.image_of("other"), Unknown)
