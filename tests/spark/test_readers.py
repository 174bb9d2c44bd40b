"""Tests ReaderWatch: which processes serve a run's readers, what is seen of them meanwhile, and which are refused."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from memarena.log.manifest import ReaderRef
from memarena_spark import running
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.derived import derive, read_facts
from memarena_spark.bundle.verify import Trust, verify
from memarena_spark.checks.services import check_reach
from memarena_spark.errors import RefusedError
from memarena_spark.facts import Unknown
from memarena_spark.watching.addresses import is_loopback, reach_of
from memarena_spark.watching.processes import command_of, executable_of
from memarena_spark.watching.records import ReaderWatch
from memarena_spark.watching.watcher import Watched

from .conftest import Keys
from .nodes import FakeNode, spark_plan
from .test_verify import seal_again

_SERVER = """
import os, socket, sys
kept = [socket.create_server((host, 0), family=family) for host, family in (
    ("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))]
for word in sys.argv[2:]:
    if word.startswith("connect="):
        host, _, port = word.removeprefix("connect=").rpartition(":")
        kept.append(socket.create_connection((host, int(port))))
print(*(each.getsockname()[1] for each in kept[:2]), flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Start a process that listens on both loopback addresses; yield it and its IPv4 and IPv6 ports.

    It connects to each address that a word ``connect=HOST:PORT`` names.
    """
    command = [sys.executable, "-c", _SERVER, "serve", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ports = process.stdout.readline().split()
        try:
            yield process, int(ports[0]), int(ports[1])
        finally:
            process.kill()


def watched(url: str, looks: int = 1) -> ReaderWatch:
    """Return the watch of a reader at an address after ``looks`` looks."""
    ref = ReaderRef(name="model", kind="url", model="model-7", base_url=url, context_window_tokens=16)
    watch = Watched(ref, reach_of(url))
    for _ in range(looks):
        watch.look()
    return watch.result()


def own_address() -> str:
    """Return an address of this machine that is not on loopback; skip the test if there is none."""
    addresses = (each for interface in psutil.net_if_addrs().values() for each in interface)
    own_addresses = [
        each.address for each in addresses if each.family == socket.AF_INET and not is_loopback(each.address)
    ]
    if not own_addresses:
        pytest.skip("this machine has no address but loopback")
    return own_addresses[0]


def test_process_weights_and_loopback_connections_are_seen(tmp_path: Path) -> None:
    weights = tmp_path / "small.gguf"
    weights.write_bytes(b"weights" * 100)
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        connect = f"connect=127.0.0.1:{server.getsockname()[1]}"
        process, port, port6 = stack.enter_context(serving(connect, f"--model={weights}", "--api-key", "hush"))
        watch = watched(f"http://127.0.0.1:{port}/v1", looks=2)
        assert watched(f"http://[::1]:{port6}/v1").processes[0].pid == process.pid
    assert (watch.reach, watch.elsewhere, watch.unknown, watch.looks) == ("loopback", (), (), 2)
    assert 0 < watch.longest_gap_ns == watch.last_ns - watch.first_ns
    (listener,) = (each for each in watch.processes if each.role == "listener")
    assert (listener.pid, listener.executable) == (process.pid, os.path.realpath(sys.executable))
    assert listener.executable_sha256 == hashlib.sha256(Path(sys.executable).read_bytes()).hexdigest()
    assert listener.command[-2:] == ("--api-key", "(hidden)")
    assert not isinstance(watch.model, Unknown)
    assert [each.sha256 for each in watch.model] == [hashlib.sha256(weights.read_bytes()).hexdigest()]
    # This test's process is the other end of a loopback connection, so it might be a relay.
    assert os.getpid() in {each.pid for each in watch.processes if each.role == "peer"}


def test_connections_to_other_machines_are_seen_also_through_a_relay() -> None:
    address = own_address()
    with socket.create_server((address, 0)) as outside, ExitStack() as stack:
        there = f"{address}:{outside.getsockname()[1]}"
        _, direct, _ = stack.enter_context(serving(f"connect={there}"))
        relay, relay_port, _ = stack.enter_context(serving(f"connect={there}"))
        _, through, _ = stack.enter_context(serving(f"connect=127.0.0.1:{relay_port}"))
        (line,) = watched(f"http://127.0.0.1:{direct}").elsewhere
        assert line.startswith(f"{there} of ")
        # The second look examines the relay, which the first one detected.
        (line,) = watched(f"http://127.0.0.1:{through}", looks=2).elsewhere
        assert line.startswith(f"{there} of ")
        assert line.endswith(str(relay.pid))


def test_values_that_cannot_be_read_are_unknown_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (process, port, _):
        assert "server states model model-7" in str(watched(f"http://127.0.0.1:{port}").model)
        url = f"http://127.0.0.1:{port}/v1"
        with monkeypatch.context() as patch:
            denied = psutil.AccessDenied(process.pid)
            patch.setattr(psutil.Process, "net_connections", lambda *_: (_ for _ in ()).throw(denied))
            (reason,) = watched(url).unknown
            assert "may not be read: start it as the run's user" in reason
        with monkeypatch.context() as patch:
            others = [each._replace(pid=None) for each in psutil.net_connections("tcp")]
            patch.setattr(psutil, "net_connections", lambda _: others)
            assert any("belongs to another user" in reason for reason in watched(url).unknown)
        process.kill()
        process.wait()
        assert watched(url).unknown == (f"no process listens on port {port}", "no process was seen")


def test_the_end_of_a_process_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that ends while it is read, a connection closed by its other end, a listing that missed a process."""
    with serving() as (process, _, _):
        child = psutil.Process(process.pid)
        process.kill()
        process.wait()
        with pytest.raises(psutil.NoSuchProcess):
            executable_of(child)

    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        _, port, _ = stack.enter_context(serving(f"connect=127.0.0.1:{server.getsockname()[1]}"))
        server.accept()[0].close()
        server.close()
        assert watched(f"http://127.0.0.1:{port}").unknown == ()

    with serving() as (process, port, _):
        complete, listings = psutil.net_connections, []

        def incomplete_at_first(kind: str) -> list[Any]:
            connections = complete(kind)
            listings.append(kind)
            return [each._replace(pid=None) for each in connections] if len(listings) == 1 else connections

        monkeypatch.setattr(psutil, "net_connections", incomplete_at_first)
        watch = watched(f"http://127.0.0.1:{port}")
        assert (watch.unknown, [each.pid for each in watch.processes]) == ((), [process.pid])


def test_a_child_that_ends_before_its_program_is_read_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (process, port, _):
        with monkeypatch.context() as patch:
            ended = psutil.NoSuchProcess(process.pid)
            patch.setattr(psutil.Process, "exe", lambda _: (_ for _ in ()).throw(ended))
            watch = watched(f"http://127.0.0.1:{port}")
            assert (watch.processes, watch.unknown) == ((), ("no process was seen",))
        with monkeypatch.context() as patch:
            patch.setattr(psutil.Process, "exe", lambda _: (_ for _ in ()).throw(psutil.AccessDenied(process.pid)))
            (listener,) = watched(f"http://127.0.0.1:{port}").processes
            assert isinstance(listener.executable_sha256, Unknown)


def test_where_addresses_are() -> None:
    assert [reach_of(f"http://{host}:1/v1") for host in ("127.0.0.1", "[::1]", "localhost", "10.9.8.7")] == [
        *("loopback",) * 3,
        "elsewhere",
    ]
    assert [is_loopback(each) for each in ("::ffff:127.0.0.3", "::ffff:10.0.0.1", "fe80::1%eth0")] == [
        True,
        False,
        False,
    ]


def test_a_reader_on_another_machine_is_refused_before_the_run() -> None:
    plan = spark_plan().plan
    assert [each.code for each in check_reach(FakeNode(reach="elsewhere"), plan)] == ["reader-remote"]
    assert [*check_reach(FakeNode(), plan), *check_reach(FakeNode(reach="container"), plan)] == []


def test_recorded_command_lines_hide_secrets() -> None:
    words = [
        "serve",
        "--token=abcdef",
        "--hf-token",
        "zzz",
        "--max-tokens",
        "400",
        "http://me:pw@host/x",
        "hf_0123456789",
    ]
    hidden = ("serve", "--token=(hidden)", "--hf-token", "(hidden)", "--max-tokens", "400", "http://(hidden)@host/x")
    assert command_of(words) == (*hidden, "(hidden)")


Change = Callable[[dict[str, object]], None]
REFUSED: dict[str, tuple[Change, str]] = {
    "elsewhere": (lambda watch: watch.update(elsewhere=["203.0.113.9:443 of python 7"]), "reader-elsewhere"),
    "remote": (lambda watch: watch.update(reach="elsewhere"), "reader-elsewhere"),
    "unknown": (lambda watch: watch.update(unknown=["connections of process 7 may not be read"]), "reader-unknown"),
    "no look": (lambda watch: watch.update(looks=0, first_ns=0, last_ns=0), "reader-unknown"),
    "a gap": (lambda watch: watch.update(longest_gap_ns=31 * 10**9), "reader-unknown"),
    "another address": (lambda watch: watch.update(base_url="http://127.0.0.1:1/v1"), "reader-unknown"),
}


def test_a_run_whose_readers_were_not_seen_or_were_elsewhere_is_not_certified(
    finished: Path, signed: Path, keys: Keys, tmp_path: Path, copy_of: Callable[[Path], Path]
) -> None:
    verification = verify(signed, Trust(allowed=keys.allowed))
    assert any(line.startswith("reader extractive: python") for line in verification.held), verification.held
    assert not [line for line in verification.unchecked if "its model" in line]
    manifest = json.loads((signed / layout.MANIFEST).read_bytes())
    assert manifest["readers"]["extractive"]["processes"][0]["executable_sha256"]

    run, bundle = copy_of(finished), copy_of(signed)
    whole = json.loads((finished / running.RECORD).read_bytes())
    for name, (change, code) in REFUSED.items():
        record = json.loads(json.dumps(whole))
        change(record["readers"][0])
        write_record(run / running.RECORD, record)
        with pytest.raises(RefusedError) as error:
            certify(run, tmp_path / "refused", keys.key)
        assert {each.code for each in error.value.refusals} == {code}, name
    write_record(run / running.RECORD, {**whole, "readers": {"unknown": "the process ended early"}})
    with pytest.raises(RefusedError, match="the process ended early"):
        certify(run, tmp_path / "refused", keys.key)

    # Forged before signing; the rest of the bundle is recomputed from it.
    record = json.loads(json.dumps(whole))
    REFUSED["elsewhere"][0](record["readers"][0])
    write_record(bundle / layout.RECORD, record)
    for name, content in derive(read_facts(bundle)).items():
        (bundle / name).write_bytes(content)
    seal_again(bundle, keys.key)
    faults = [fault.message for fault in verify(bundle, Trust(allowed=keys.allowed)).faults]
    assert any("reader-elsewhere: reader extractive: connected to 203.0.113.9:443" in fault for fault in faults)


def write_record(path: Path, record: dict[str, object]) -> None:
    path.write_text(json.dumps(record, sort_keys=True, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
