"""Tests a sweep on two raylets of this machine, interrupted three times: each cell once, scores of a plain run."""

from __future__ import annotations

import dataclasses
import filecmp
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tests.e2e.harnessing import here, kill, memarena, start, survivors, wait_until

from .cluster import RayCluster, ray_cluster
from .sweeping import (
    MEMORIES,
    Settled,
    asked_so_far,
    of_sweep,
    reader_urls,
    sent,
    state,
    struck,
    sweep_file,
    working_in,
)

pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(2) as cluster_of_two:
        yield cluster_of_two


def masim(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "memarena_masim",
        "generate",
        "--preset",
        "tiny",
        "--seed",
        "5",
        *map(str, arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_worlds_generated_on_a_cluster_equal_local_ones(cluster: RayCluster, tmp_path: Path) -> None:
    """They are equal byte for byte; finished worlds are not generated again, and no file stays on the nodes."""
    remote, local = tmp_path / "there", tmp_path / "here"
    on_ray = ("--worlds", "3", "--out", remote, "--executor", "ray", "--address", cluster.address)
    result = masim(*on_ray)
    assert result.returncode == 0, result.stderr
    assert masim("--worlds", "3", "--out", local, "--quiet").returncode == 0
    for world in sorted(path.name for path in local.iterdir()):
        names = sorted(
            path.relative_to(local / world).as_posix() for path in (local / world).rglob("*") if path.is_file()
        )
        names.remove("run_info.json")  # how long it took
        assert len(names) > 5
        assert filecmp.cmpfiles(local / world, remote / world, names, shallow=False) == (names, [], [])
    assert sorted(path.name for path in remote.iterdir()) == ["world_00", "world_01", "world_02"]
    (remote / "world_01" / "run_info.json").unlink()
    again = masim(*on_ray)
    assert (again.returncode, again.stdout) == (0, result.stdout)
    assert not (remote / "world_01" / "run_info.json").exists(), "it was complete"


def test_a_wrong_token_gives_one_line(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Ray's own messages about its retries."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    result = masim("--out", tmp_path / "out", "--executor", "ray", "--address", cluster.address)
    assert (result.returncode, result.stdout) == (2, "")
    assert "does not take the token" in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr


def test_worlds_that_cannot_be_generated_on_a_cluster_give_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong address, flags that exclude each other, a folder that is not empty."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    for out, flags, message in (
        ("out", ("--executor", "ray", "--address", "127.0.0.2:9"), "--address 127.0.0.2:9: no server answers there"),
        ("out", ("--executor", "ray", "--address", "nowhere"), "--address nowhere: HOST:PORT or auto is expected"),
        ("out", ("--executor", "slurm"), "--executor slurm: one of local, ray is expected"),
        ("out", ("--address", "auto"), "--address: goes with --executor ray"),
        ("out", ("--executor", "ray", "--workers", "2"), "--workers: does not go with --executor ray"),
        ("full", ("--executor", "ray"), f"--out {tmp_path / 'full'}: not empty"),
    ):
        result = masim("--out", tmp_path / out, *flags)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: {message}") and len(result.stderr.splitlines()) == 1, result.stderr
    assert (tmp_path / "full" / "notes.txt").read_text() == "mine"


def test_a_cluster_started_by_the_sweep_gives_the_scores_of_a_plain_run(plain: Settled, tmp_path: Path) -> None:
    """A cluster of one node, which ends with the sweep."""
    scratch = tmp_path / "scratch"
    result = memarena(
        *("sweep", sweep_file(tmp_path, MEMORIES), "--out", tmp_path / "out", "--executor", "ray", "--scratch", scratch)
    )
    assert result.returncode == 0, result.stderr
    assert of_sweep(tmp_path / "out") == [plain] != [{}]
    assert len(set(reader_urls(tmp_path / "out"))) == 1, "its cells share a reader"
    assert working_in(scratch) == []


def test_after_kills_of_a_raylet_and_the_driver_every_cell_is_sealed_once(
    cluster: RayCluster, plain: Settled, tmp_path: Path
) -> None:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    arguments: tuple[str | Path, ...] = (sweep_file(tmp_path, MEMORIES), "--out", out, "--scratch", scratch)
    arguments = (*arguments, "--executor", "ray", "--address", cluster.address)
    # Both cells are running, one on each raylet, when the driver is killed.
    code, surviving = struck(arguments, lambda: _asked(scratch) >= 2, signal.SIGKILL)
    assert (code, surviving) == (-signal.SIGKILL, [])
    assert set(state(out).nodes.values()) == {"node-0", "node-1"}
    assert working_in(scratch) == [], "what the driver began on the nodes ended with it"
    assert _asked(scratch) >= 2, "the logs stay"
    # After a restart a raylet is killed during a cell, and the driver is stopped.
    sent_before = len(sent(out))
    driver = start("sweep", *arguments)
    wait_until(lambda: "node-1" in _busy(out, sent_before, scratch), driver)
    cluster.nodes[1].kill_raylet()
    wait_until(lambda: bool(state(out).lost) or len(state(out).sealed) == 2, driver)
    family = kill(driver, signal.SIGINT)
    assert survivors(family) == []
    assert working_in(scratch) == []
    # The remaining node runs the other cells.
    result = memarena("sweep", *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == f"2 of 2 cells sealed; memarena report {out}"
    assert of_sweep(out) == [plain] != [{}]
    losses_of_cells = [loss for losses in state(out).lost.values() for loss in losses]
    assert [(loss.node, loss.by_node, loss.cause) for loss in losses_of_cells] == [
        ("node-1", True, "the node node-1 is gone")
    ]
    assert list(scratch.iterdir()) == [], "nothing stays"
    assert working_in(scratch) == []


def _busy(out: Path, before: int, scratch: Path) -> set[str]:
    """Return the nodes that got cells since, once each of these cells has its process."""
    cells = sent(out)[before:]
    working = working_in(scratch, 0.0)
    return {state(out).nodes[cell] for cell in cells if any(cell in process for process in working)}


def _asked(scratch: Path) -> int:
    return max((asked_so_far(folder) for folder in scratch.glob("*")), default=0)


class _TakesAnything(grpc.GenericRpcHandler):
    """A gRPC service without authentication."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")


def test_a_wrong_address_token_or_executor_gives_one_line(
    cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("sweep", sweep_file(tmp_path, MEMORIES), "--out", tmp_path / "out", "--executor", "ray", "--address")
    for address, message in (
        ("127.0.0.2:9", "--address 127.0.0.2:9: no server answers there: Connection refused"),
        ("nowhere", "--address nowhere: expected HOST:PORT or auto"),
    ):
        result = here(*arguments, address)
        assert (result.returncode, result.stderr) == (2, f"error: {message}\n")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    result = here(*arguments, cluster.address)
    message = f"--address {cluster.address}: the cluster does not take the token of RAY_AUTH_TOKEN or its file"
    assert (result.returncode, result.stderr) == (2, f"error: {message}\n")
    services: list[grpc.GenericRpcHandler] = [_TakesAnything()]
    for handlers, message in (
        ([], "what answers there is no head of a Ray cluster (UNIMPLEMENTED)"),
        (services, "the cluster takes orders from anybody: start its nodes with RAY_AUTH_MODE=token"),
    ):
        server = grpc.server(ThreadPoolExecutor(1), handlers=handlers)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        result = here(*arguments, address)
        server.stop(None)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: --address {address}: {message}")
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "none"))
    result = here(*arguments, cluster.address)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--executor ray: no token of the cluster: expected RAY_AUTH_TOKEN" in result.stderr
    assert sent(tmp_path / "out") == []


def test_a_node_with_other_versions_is_distinguished() -> None:
    from memarena.sweep.executors.ray_node import difference, node_facts

    ours = node_facts()
    assert difference(ours, node_facts()) is None
    assert difference(ours, dataclasses.replace(ours, python="3.11.99")) == f"Python 3.11.99, here {ours.python}"
    older = dataclasses.replace(ours, packages={**ours.packages, "numpy": "1.0"})
    assert difference(ours, older) == f"numpy 1.0, here {ours.packages['numpy']}"
    without = {name: version for name, version in ours.packages.items() if name != "memarena"}
    assert difference(ours, dataclasses.replace(ours, packages=without)) == (
        f"memarena missing, here {ours.packages['memarena']}"
    )


@pytest.fixture
def short_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files of what a test starts; Ray refuses a long path for its sockets."""
    folder = Path(tempfile.mkdtemp(prefix="st-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


def test_sigterm_while_ray_starts_ends_all_processes_and_removes_folders(tmp_path: Path, short_folder: Path) -> None:
    """The folder of a sweep that was killed earlier is removed too."""
    killed = short_folder / "ms-killed"
    killed.mkdir()
    (killed / "owner").write_text("4194304 1.0")
    code, surviving = struck(alone(tmp_path), lambda: bool({*short_folder.glob("ms-*")} - {killed}), signal.SIGTERM)
    assert (code, surviving) == (130, [])
    assert list(short_folder.glob("ms-*")) == []


def test_sigterm_while_rays_core_starts_is_obeyed_without_a_stack_trace(tmp_path: Path, short_folder: Path) -> None:
    driver = start("sweep", *alone(tmp_path))
    logs = "ms-*/session_*/logs/python-core-driver*"
    wait_until(lambda: any("Constructing" in log.read_text() for log in short_folder.glob(logs)), driver)
    driver.send_signal(signal.SIGTERM)
    output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 130, output
    assert "SIGTERM" not in output
    assert list(short_folder.glob("ms-*")) == []


def test_sigterm_while_a_cluster_does_not_answer_ends_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        arguments = (
            sweep_file(tmp_path, ("bm25",)),
            "--out",
            tmp_path / "out",
            "--executor",
            "ray",
            "--address",
            address,
        )
        driver = start("sweep", *arguments)
        server.settimeout(60)
        with server.accept()[0], server.accept()[0]:  # a look at the port, and a request that gets no answer
            driver.send_signal(signal.SIGTERM)
            output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 130, output


def alone(folder: Path) -> tuple[str | Path, ...]:
    """Return arguments for a sweep of one cell on a Ray of its own."""
    return sweep_file(folder, ("bm25",)), "--out", folder / "out", "--executor", "ray", "--cores", "1"
