"""What the real node reads: the kernel's files, a driver's library, servers over HTTP, the container daemon."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from memarena_spark import warm
from memarena_spark.facts import Embedder, Gpu, GpuProcess, Image, Memory, ReaderServer, Unknown
from memarena_spark.machine import ThisMachine, gpu, host, images
from memarena_spark.machine.services import ask_embedder, ask_reader
from memarena_spark.plans import EmbedderSpec, ReaderServerSpec

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


def test_memory_and_swap_are_told_in_bytes(tmp_path: Path) -> None:
    root = write(tmp_path, proc__meminfo="MemTotal: 100 kB\nMemAvailable: 60 kB\nSwapTotal: 20 kB\nSwapFree: 15 kB")
    assert host.memory(root) == Memory(available_bytes=60 * 1024, swap_used_bytes=5 * 1024)


def test_memory_that_the_kernel_does_not_tell_is_unknown(tmp_path: Path) -> None:
    found = host.memory(write(tmp_path, proc__meminfo="MemTotal: 100 kB"))
    assert isinstance(found, Unknown)
    assert "has no MemAvailable" in found.unknown


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


def test_temperatures_come_from_both_places_of_the_kernel(tmp_path: Path) -> None:
    assert isinstance(host.temperatures(tmp_path), Unknown)
    write(tmp_path / "sys/class/hwmon/hwmon0", name="soc", temp1_input="51500", temp1_label="die")
    write(tmp_path / "sys/class/thermal/thermal_zone0", type="acpitz", temp="48000")
    assert host.temperatures(tmp_path) == {"soc.die.temperature": 51.5, "thermal_zone0.acpitz": 48.0}


@pytest.mark.parametrize(
    ("state", "status", "expected"), [(0, 0, True), (5, 0x40, False), (0, 0x40, False), (5, 0, False)]
)
def test_a_clock_out_of_step_is_seen(state: int, status: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """adjtimex(2): TIME_ERROR is 5, STA_UNSYNC is 0x40."""

    def adjtimex(buffer: object) -> int:
        memoryview(buffer).cast("B")[40:44] = status.to_bytes(4, "little")  # type: ignore[arg-type]
        return state

    library = SimpleNamespace(adjtimex=adjtimex)
    monkeypatch.setattr("memarena_spark.machine.host.ctypes.CDLL", lambda *_, **__: library)
    assert host.clock_synchronised() is expected


# ------------------------------------------------------------------ NVML


class NvmlError(Exception):
    """As pynvml's."""


@dataclass
class Nvml:
    """As much of pynvml as is used, with a GB10's answers."""

    refuses: tuple[str, ...] = ()
    bits: int = 0
    pids: tuple[int, ...] = ()
    open: int = 0
    NVMLError: type[Exception] = NvmlError
    NVML_TEMPERATURE_GPU: int = 0
    NVML_CLOCK_SM: int = 1

    def _give(self, name: str, value: object) -> object:
        if name in self.refuses:
            raise NvmlError("Not Supported")
        return value

    def nvmlInit(self) -> None:
        self._give("init", None)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> object:
        return "580.95.05"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        return self._give("handle", index)

    def nvmlDeviceGetName(self, _: object) -> object:
        return b"NVIDIA GB10"

    def nvmlDeviceGetTemperature(self, _: object, sensor: int) -> object:
        assert sensor == self.NVML_TEMPERATURE_GPU
        return self._give("temperature", 44)

    def nvmlDeviceGetClockInfo(self, _: object, clock: int) -> object:
        assert clock == self.NVML_CLOCK_SM
        return self._give("clock", 2400)

    def nvmlDeviceGetMaxClockInfo(self, _: object, clock: int) -> object:
        assert clock == self.NVML_CLOCK_SM
        return self._give("max", 3003)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _: object) -> object:
        return self._give("reasons", self.bits)

    def nvmlDeviceGetComputeRunningProcesses(self, _: object) -> object:
        return self._give("processes", [SimpleNamespace(pid=pid) for pid in self.pids])

    def nvmlDeviceGetGraphicsRunningProcesses(self, _: object) -> object:
        return []


def read(nvml: Nvml) -> Gpu | Unknown:
    return gpu.read_gpu(0, nvml)  # type: ignore[arg-type]


def test_a_gpu_is_described_and_the_library_let_go_of() -> None:
    nvml = Nvml(bits=0x8 | 0x1, pids=(os.getpid(), 2**22 + 1))
    found = read(nvml)
    assert isinstance(found, Gpu)
    assert (found.name, found.driver, found.max_sm_clock_mhz) == ("NVIDIA GB10", "580.95.05", 3003.0)
    assert found.slowdowns == ("hardware slowdown",)
    assert isinstance(found.processes, tuple)
    assert [p.pid for p in found.processes] == [os.getpid(), 2**22 + 1]
    assert "python" in found.processes[0].name
    assert found.processes[1] == GpuProcess(pid=2**22 + 1, name="")
    assert nvml.open == 0


def test_idleness_is_no_slowdown_and_every_other_reason_is() -> None:
    assert gpu.slowdowns(0x1 | 0x2 | 0x10 | 0x100) == ()
    assert len(gpu.slowdowns(0xFFFF)) == len(gpu.SLOWDOWNS)


@pytest.mark.parametrize(
    ("what", "field_name"),
    [
        ("temperature", "temperature_c"),
        ("max", "max_sm_clock_mhz"),
        ("reasons", "slowdowns"),
        ("processes", "processes"),
    ],
)
def test_what_the_driver_does_not_support_is_unknown_and_the_rest_is_read(what: str, field_name: str) -> None:
    nvml = Nvml(refuses=(what,))
    found = read(nvml)
    assert isinstance(found, Gpu)
    assert isinstance(getattr(found, field_name), Unknown)
    assert found.sm_clock_mhz == 2400.0
    assert nvml.open == 0


@pytest.mark.parametrize("what", ["init", "handle"])
def test_without_driver_or_gpu_there_is_a_reason(what: str) -> None:
    nvml = Nvml(refuses=(what,))
    found = read(nvml)
    assert isinstance(found, Unknown)
    assert "Not Supported" in found.unknown
    assert nvml.open == 0


# ------------------------------------------------------------------ servers


@dataclass
class Server:
    """An HTTP server that answers from a table; what is not in it is 404. Lists are given one after the other."""

    answers: dict[str, object] = field(default_factory=dict)
    received: list[tuple[str, object]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            state.received.append((self.path, body))
            found = state.answers.get(self.path)
            content = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{httpd.server_port}"
    yield state
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def ollama(server: Server, vram: int = 1000) -> EmbedderSpec:
    server.answers = {
        "/api/version": {"version": "0.12.6"},
        "/api/embed": {"model": "bge-m3", "embeddings": [[0.1, 0.2]]},
        "/api/ps": {"models": [{"name": "bge-m3:latest", "size": 1000, "size_vram": vram}]},
    }
    return EmbedderSpec(url=server.url, model="bge-m3")


def test_ollama_is_asked_for_its_version_a_warm_embedding_and_where_the_model_is(server: Server) -> None:
    found = ask_embedder(ollama(server, vram=700))
    assert isinstance(found, Embedder)
    assert (found.version, found.size_bytes, found.vram_bytes) == ("0.12.6", 1000, 700)
    assert 0 < found.warm_s < 5
    assert [path for path, _ in server.received].count("/api/embed") == 2
    # The server is a thread of this process, so this process's start is that of the server.
    assert isinstance(found.started_at_unix, float)


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
def test_an_embedder_that_does_not_answer_as_it_should_is_unknown(
    path: str, answer: object, reason: str, server: Server
) -> None:
    spec = ollama(server)
    server.answers[path] = answer
    found = ask_embedder(spec)
    assert isinstance(found, Unknown)
    assert reason in found.unknown


def test_a_server_that_is_not_there_is_unknown() -> None:
    found = ask_embedder(EmbedderSpec(url="http://127.0.0.1:9", model="bge-m3"))
    assert isinstance(found, Unknown)
    assert "cannot be reached" in found.unknown
    other = ask_reader(ReaderServerSpec(url="http://127.0.0.1:9", model="m"))
    assert isinstance(other, Unknown)
    assert "cannot be reached" in other.unknown


@pytest.mark.parametrize("vram", [1000, 0])
def test_warming_up_says_whether_the_model_is_on_the_gpu(
    vram: int, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = ollama(server, vram)
    assert warm.main(["--url", spec.url, "--model", spec.model]) == (0 if vram else 1)
    assert ("refused embedder-on-cpu" in capsys.readouterr().err) is (vram == 0)


def sglang(server: Server, reply: object, route: str = "/server_info") -> ReaderServer | Unknown:
    server.answers = {
        "/v1/models": {"data": [{"id": "qwen"}]},
        route: {"model_path": "qwen", "version": "0.5.23", "disable_radix_cache": True, "context_length": 16384},
        "/v1/chat/completions": reply,
    }
    return ask_reader(ReaderServerSpec(url=server.url, model="qwen"))


def said(**message: object) -> object:
    return {"choices": [{"message": {"role": "assistant", **message}}]}


@pytest.mark.parametrize("route", ["/server_info", "/get_server_info"])
def test_sglang_is_read_back_by_either_of_its_doors(route: str, server: Server) -> None:
    found = sglang(server, said(content="Hello"), route)
    assert isinstance(found, ReaderServer)
    assert (found.kind, found.probe_failure) == ("sglang", "")
    assert found.details["disable_radix_cache"] == "True"
    assert found.details["version"] == "0.5.23"


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
def test_a_reader_must_say_something(reply: object, failure: str, server: Server) -> None:
    found = sglang(server, reply)
    assert isinstance(found, ReaderServer)
    assert failure in found.probe_failure
    assert bool(found.probe_failure) is bool(failure)


# ------------------------------------------------------------------ containers

DIGEST = "sha256:" + "cd" * 32


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program named docker first on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(images.DECLARED, raising=False)

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


def test_an_image_that_will_be_run_has_a_digest_too(docker: Callable[[str], None]) -> None:
    docker(f'case "$5" in *Id*) [ "$3" = bm25:1 ] && echo sha256:{"ee" * 32};; *) echo "[]";; esac')
    assert images.image_of("image:bm25:1") == Image(digest="sha256:" + "ee" * 32, source="docker")
    assert isinstance(images.image_of("image:other"), Unknown)


def test_a_container_that_is_not_there_is_unknown(docker: Callable[[str], None]) -> None:
    docker('echo "Error: No such object: sglang" >&2; exit 1')
    assert images.image_of("sglang") == Unknown(unknown="docker: Error: No such object: sglang")
    assert isinstance(images.container_started_at("sglang"), Unknown)


def test_when_a_container_was_started_is_told_to_the_microsecond(docker: Callable[[str], None]) -> None:
    docker("echo 2026-11-21T10:00:00.123456789Z")
    assert images.container_started_at("x") == pytest.approx(1795255200.123456, abs=1e-5)
    docker("echo soon")
    assert isinstance(images.container_started_at("x"), Unknown)


def test_inside_a_stack_the_compose_file_s_own_variable_tells_the_digests(
    docker: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    docker("exit 1")
    monkeypatch.setenv(images.DECLARED, f"ollama=ollama/ollama@sha256:{'00' * 32} sglang=lmsysorg/sglang@{DIGEST}")
    assert images.image_of("sglang") == Image(digest=DIGEST, source="declared")
    assert isinstance(images.image_of("other"), Unknown)
