"""A sweep on two raylets of this machine, struck three times: every cell once, the scores of a plain run."""

from __future__ import annotations

import dataclasses
import filecmp
import signal
import subprocess
import sys
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
    with ray_cluster(2) as made:
        yield made


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


def test_worlds_made_on_a_cluster_are_those_made_here(cluster: RayCluster, tmp_path: Path) -> None:
    """Byte for byte; what is complete is not made again, and nothing stays on the nodes."""
    there, local = tmp_path / "there", tmp_path / "here"
    on_ray = ("--worlds", "3", "--out", there, "--executor", "ray", "--address", cluster.address)
    done = masim(*on_ray)
    assert done.returncode == 0, done.stderr
    assert masim("--worlds", "3", "--out", local, "--quiet").returncode == 0
    for world in sorted(path.name for path in local.iterdir()):
        names = sorted(
            path.relative_to(local / world).as_posix() for path in (local / world).rglob("*") if path.is_file()
        )
        names.remove("run_info.json")  # how long it took
        assert len(names) > 5
        assert filecmp.cmpfiles(local / world, there / world, names, shallow=False) == (names, [], [])
    assert sorted(path.name for path in there.iterdir()) == ["world_00", "world_01", "world_02"]
    (there / "world_01" / "run_info.json").unlink()
    again = masim(*on_ray)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert not (there / "world_01" / "run_info.json").exists(), "it was complete"


def test_a_wrong_token_is_one_line(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not what Ray prints while it tries again."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    done = masim("--out", tmp_path / "out", "--executor", "ray", "--address", cluster.address)
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not take the token" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_worlds_that_a_cluster_cannot_make_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address, flags that do not go together, a folder that is not empty."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    for out, flags, told in (
        ("out", ("--executor", "ray", "--address", "127.0.0.2:9"), "--address 127.0.0.2:9: nobody answers there"),
        ("out", ("--executor", "ray", "--address", "nowhere"), "--address nowhere: HOST:PORT or auto is expected"),
        ("out", ("--executor", "slurm"), "--executor slurm: one of local, ray is expected"),
        ("out", ("--address", "auto"), "--address: goes with --executor ray"),
        ("out", ("--executor", "ray", "--workers", "2"), "--workers: does not go with --executor ray"),
        ("full", ("--executor", "ray"), f"--out {tmp_path / 'full'}: not empty"),
    ):
        done = masim("--out", tmp_path / out, *flags)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {told}") and len(done.stderr.splitlines()) == 1, done.stderr
    assert (tmp_path / "full" / "notes.txt").read_text() == "mine"


def test_a_ray_of_its_own_gives_the_scores_of_a_plain_run(plain: Settled, tmp_path: Path) -> None:
    """One node, which ends with the sweep."""
    scratch = tmp_path / "scratch"
    done = memarena(
        *("sweep", sweep_file(tmp_path, MEMORIES), "--out", tmp_path / "out", "--executor", "ray", "--scratch", scratch)
    )
    assert done.returncode == 0, done.stderr
    assert of_sweep(tmp_path / "out") == [plain] != [{}]
    assert len(set(reader_urls(tmp_path / "out"))) == 1, "its cells share a reader"
    assert working_in(scratch) == []


def test_a_raylet_and_the_driver_are_killed_and_every_cell_is_sealed_once(
    cluster: RayCluster, plain: Settled, tmp_path: Path
) -> None:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    arguments: tuple[str | Path, ...] = (sweep_file(tmp_path, MEMORIES), "--out", out, "--scratch", scratch)
    arguments = (*arguments, "--executor", "ray", "--address", cluster.address)
    # Both cells are under way, one on each raylet, when the driver is killed.
    code, left = struck(arguments, lambda: _asked(scratch) >= 2, signal.SIGKILL)
    assert (code, left) == (-signal.SIGKILL, [])
    assert set(state(out).nodes.values()) == {"node-0", "node-1"}
    assert working_in(scratch) == [], "what the driver began on the nodes ended with it"
    assert _asked(scratch) >= 2, "the logs stay"
    # Started again, it loses a raylet in the middle of a cell, and is stopped.
    before = len(sent(out))
    driver = start("sweep", *arguments)
    wait_until(lambda: "node-1" in _busy(out, before, scratch), driver)
    cluster.nodes[1].kill_raylet()
    wait_until(lambda: bool(state(out).lost) or len(state(out).sealed) == 2, driver)
    family = kill(driver, signal.SIGINT)
    assert survivors(family) == []
    assert working_in(scratch) == []
    # The node that is left does the rest.
    done = memarena("sweep", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == f"2 of 2 cells sealed; memarena report {out}"
    assert of_sweep(out) == [plain] != [{}]
    lost = [each for losses in state(out).lost.values() for each in losses]
    assert [(each.node, each.by_node, each.cause) for each in lost] == [("node-1", True, "the node node-1 is gone")]
    assert list(scratch.iterdir()) == [], "nothing stays"
    assert working_in(scratch) == []


def _busy(out: Path, before: int, scratch: Path) -> set[str]:
    """Nodes that were sent cells since, once each of these cells has its process."""
    cells = sent(out)[before:]
    working = working_in(scratch, 0.0)
    return {state(out).nodes[cell] for cell in cells if any(cell in process for process in working)}


def _asked(scratch: Path) -> int:
    return max((asked_so_far(folder) for folder in scratch.glob("*")), default=0)


class _TakesAnything(grpc.GenericRpcHandler):
    """A service without authentication."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")


def test_a_wrong_address_token_or_executor_is_one_line(
    cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("sweep", sweep_file(tmp_path, MEMORIES), "--out", tmp_path / "out", "--executor", "ray", "--address")
    for address, told in (
        ("127.0.0.2:9", "--address 127.0.0.2:9: nobody answers there: Connection refused"),
        ("nowhere", "--address nowhere: expected HOST:PORT or auto"),
    ):
        done = here(*arguments, address)
        assert (done.returncode, done.stderr) == (2, f"error: {told}\n")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    done = here(*arguments, cluster.address)
    told = f"--address {cluster.address}: the cluster does not take the token of RAY_AUTH_TOKEN or its file"
    assert (done.returncode, done.stderr) == (2, f"error: {told}\n")
    services: list[grpc.GenericRpcHandler] = [_TakesAnything()]
    for handlers, told in (
        ([], "what answers there is no head of a Ray cluster (UNIMPLEMENTED)"),
        (services, "the cluster takes orders from anybody: start its nodes with RAY_AUTH_MODE=token"),
    ):
        server = grpc.server(ThreadPoolExecutor(1), handlers=handlers)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        done = here(*arguments, address)
        server.stop(None)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: --address {address}: {told}")
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "none"))
    done = here(*arguments, cluster.address)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--executor ray: no token of the cluster: expected RAY_AUTH_TOKEN" in done.stderr
    assert sent(tmp_path / "out") == []


def test_a_node_with_other_versions_is_told_apart() -> None:
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


def test_a_request_to_end_while_ray_starts_is_obeyed_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the folder of a sweep that was killed is removed by the next one."""
    temporary = tmp_path / "t"
    killed = temporary / "ms-killed"
    killed.mkdir(parents=True)
    (killed / "owner").write_text("4194304 1.0")
    monkeypatch.setenv("TMPDIR", str(temporary))
    arguments = (sweep_file(tmp_path, ("bm25",)), "--out", tmp_path / "out", "--executor", "ray", "--cores", "1")
    code, left = struck(arguments, lambda: bool({*temporary.glob("ms-*")} - {killed}), signal.SIGTERM)
    assert (code, left) == (130, [])
    assert list(temporary.glob("ms-*")) == []
