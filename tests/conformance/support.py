"""Starts backends as processes that can be killed and started again on the same address.

The checks of durability need this: only a process that really ends shows what a backend had on disk.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
from memarena_backend.probe import is_serving

from tests.conformance.restart import kill

RESTART = Path(__file__).parent / "restart.py"
START_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Restartable:
    """A running backend; ``restart_command`` is a value for --restart-command, as an operator would pass one."""

    address: str
    state: Path

    @property
    def restart_command(self) -> str:
        return f"{sys.executable} {RESTART} {self.state}"

    @property
    def pid(self) -> int:
        return int(json.loads(self.state.read_text(encoding="utf-8"))["pid"])


@contextmanager
def restartable(argv: Sequence[str], folder: Path) -> Iterator[Restartable]:
    """Start a backend on a free port with its own data folder, and kill it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address, data = f"127.0.0.1:{port}", folder / "data"
    data.mkdir()
    state = folder / "state.json"
    command = [*argv, "--listen", address, "--data-dir", str(data)]
    state.write_text(json.dumps({"argv": command, "log": str(folder / "log")}), encoding="utf-8")
    backend = Restartable(address, state)
    # In a separate process, so that the backend is no child of the test, which would have to wait for it.
    subprocess.run(shlex.split(backend.restart_command), check=True, timeout=30)
    try:
        give_up_at = time.monotonic() + START_TIMEOUT_S
        while not _serves(address):
            assert time.monotonic() < give_up_at, (folder / "log").read_text()
            time.sleep(0.05)
        yield backend
    finally:
        with suppress(ProcessLookupError):
            kill(backend.pid)


def _serves(address: str) -> bool:
    try:
        return is_serving(address)
    except grpc.RpcError:
        return False
