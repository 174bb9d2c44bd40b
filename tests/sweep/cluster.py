"""A Ray cluster on this machine's loopback: each node has its own folder and a guard process that ends all of it.

Tests of sweeps kill a node of it as if its machine had broken down.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from memarena.processes import GuardedProcess

RAY = Path(sys.executable).parent / "ray"
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",
}
_START_S = 90.0


class RayNode:
    """A raylet (Ray's process of a node) and the processes that belong to it."""

    def __init__(self, guard: GuardedProcess, name: str) -> None:
        self._guard = guard
        self.name = name

    def kill_raylet(self) -> None:
        """Send SIGKILL to the raylet, as if its machine had broken down."""
        for process in psutil.Process(self._guard.pid).children(recursive=True):
            if process.name() == "raylet":
                process.kill()
                psutil.wait_procs([process], timeout=20)
                return
        raise AssertionError("there is no raylet")

    def stop(self) -> None:
        """End all processes of the node."""
        self._guard.stop(0.5)


class RayCluster:
    """A head and further nodes of one core each. Programs with the environment variables become part of it."""

    def __init__(self, folder: Path, environment: Mapping[str, str], bound: bool = False) -> None:
        self._folder, self._environment, self._bound = folder, environment, bound
        self._stack = ExitStack()
        self.address = ""
        self.nodes: list[RayNode] = []

    def add(self, cores: int = 1, environment: Mapping[str, str] = {}) -> RayNode:
        """Start a node; the first one is the head."""
        number = len(self.nodes)
        folder, log = self._folder / str(number), self._folder / f"{number}.log"
        # Ray replaces 127.0.0.1 with another address of the machine.
        arguments = ["start", "--block", "--node-ip-address", f"127.0.0.{number + 2}", "--node-name", f"node-{number}"]
        arguments += ["--head", "--port", "0", "--include-dashboard", "false"] if not number else []
        arguments += ["--address", self.address] if number else []
        arguments += ["--num-cpus", str(cores), "--resources", json.dumps({"timed": 1}), "--temp-dir", str(folder)]
        arguments += ["--object-store-memory", "80000000", "--min-worker-port", "0", "--max-worker-port", "0"]
        # Ray counts cores but does not bind a task to one: a run of several processes would use all cores.
        own_core = ["taskset", "--cpu-list", str(sorted(os.sched_getaffinity(0))[number])] if self._bound else []
        guard = GuardedProcess.start(
            [*own_core, str(RAY), *arguments], log_path=log, env={**self._environment, **environment}
        )
        node = RayNode(guard, f"node-{number}")
        self._stack.callback(node.stop)
        deadline = time.monotonic() + _START_S
        while "Ray runtime started" not in (output := log.read_text()) or not re.search(
            r"terminate|terminated", output
        ):
            assert guard.poll() is None, guard.log_tail(20)
            assert time.monotonic() < deadline, guard.log_tail(20)
            time.sleep(0.05)
        if not number:
            address_match = re.search(r"--address='([\d.:]+)'", output)
            assert address_match is not None, output
            self.address = address_match[1]
        self.nodes.append(node)
        return node

    def close(self) -> None:
        """End all nodes."""
        self._stack.close()


@contextmanager
def ray_cluster(nodes: int = 2, bound: bool = False) -> Iterator[RayCluster]:
    """Start a cluster for this process and its children; it ends with the block.

    ``bound``: all processes of a node share one core, as on a machine with one core (Linux only).
    """
    # Paths of sockets may have 107 characters, so the folder's path is short.
    folder = Path(tempfile.mkdtemp(prefix="mr-", dir="/tmp"))
    environment = {**ENVIRONMENT, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    old_environment = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    cluster = RayCluster(folder, environment, bound)
    try:
        for _ in range(nodes):
            cluster.add()
        yield cluster
    finally:
        cluster.close()
        for name, value in old_environment.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)
