"""Runs a backend in its own environment, with a client that offers models in every call.

Memories from other projects have packages that conflict with ours, so that they run in environments of their own; their
tests start them as processes and reach them over the contract alone.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import grpc
import pytest
from memarena.execution.backends.manifests import LaunchableBackend
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import CALL_TIMEOUT_S, Served, connect, make_day, make_query
from tests.support import model_server

START_S = 120.0
NOTHING: Mapping[str, str] = MappingProxyType({})
EXTRACTOR = pb.Model(name=model_server.EXTRACTOR, role=pb.MODEL_ROLE_EXTRACTOR)
EMBEDDER = pb.Model(name=model_server.EMBEDDER, role=pb.MODEL_ROLE_EMBEDDER)
MODELS = (EXTRACTOR, EMBEDDER)
"""Models that a scripted server offers."""


def lacking(backend: LaunchableBackend) -> str | None:
    """Return why a backend cannot be started here; None if it can."""
    if os.environ.get("MEMARENA_SYSTEMS_TEST") != "1":
        return "MEMARENA_SYSTEMS_TEST=1 is not set: backends with environments of their own are not started"
    return backend.missing()


def refused(act: Callable[[], object]) -> grpc.RpcError:
    """The error that a call ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        act()
    return caught.value


@contextmanager
def started(
    program: Sequence[str], work_dir: Path, settings: Mapping[str, str] = NOTHING
) -> Iterator[tuple[Served, subprocess.Popen[bytes]]]:
    """Start a program over ``work_dir/data``; its home, temporary and current folders are others of ``work_dir``."""
    address_file = work_dir / "address"
    address_file.unlink(missing_ok=True)
    for name in ("data", "home", "tmp", "current"):
        (work_dir / name).mkdir(exist_ok=True)
    command = [
        *(*program, "--listen", "127.0.0.1:0"),
        *("--address-file", str(address_file), "--data-dir", str(work_dir / "data")),
    ]
    environment = {
        "HOME": str(work_dir / "home"),
        "TMPDIR": str(work_dir / "tmp"),
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        **settings,
    }
    log = work_dir / "stderr.log"
    with log.open("ab") as stderr:
        process = subprocess.Popen(command, stdout=stderr, stderr=stderr, env=environment, cwd=work_dir / "current")
    try:
        give_up_at = time.monotonic() + START_S
        while not address_file.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up_at, "the backend did not write its address"
            time.sleep(0.02)
        with connect(address_file.read_text().strip()) as served:
            yield served, process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)


@dataclass
class RunningBackend:
    """The backend and a client of it. Every call has its own token, as with the real gateway."""

    served: Served
    process: subprocess.Popen[bytes]
    base_url: str = ""
    """Base URL of the server with the ``offered`` models; empty if there is none."""
    offered: tuple[pb.Model, ...] = ()
    issued: list[str] = field(default_factory=list)
    """Tokens of all calls, in order."""

    def access(self) -> pb.ModelAccess | None:
        """Access to models for one call; None if no models are offered."""
        if not self.base_url:
            return None
        self.issued.append(f"token-{len(self.issued)}")
        return pb.ModelAccess(base_url=self.base_url, token=self.issued[-1], models=self.offered)

    def ingest(
        self,
        namespace: str,
        day: int,
        *sessions: pb.Session,
        events: tuple[pb.Event, ...] = (),
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> dict[str, int]:
        """Send a day; return the counts of its notices by code."""
        frames = make_day(namespace, day, sessions, events)
        if access := self.access():
            frames[0].header.model_access.CopyFrom(access)
        return {notice.code: notice.count for notice in self.served.ingest(frames, timeout_s).notices}

    def search(self, namespace: str, text: str, day: int, **options: str) -> list[pb.MemoryItem]:
        pairs = [pb.Option(key=key, value=value) for key, value in sorted(options.items())]
        request = make_query(namespace, text, day, options=pairs)
        if access := self.access():
            request.model_access.CopyFrom(access)
        return list(self.served.search(request).items)

    def texts(self, namespace: str, text: str, day: int) -> list[str]:
        return [item.text for item in self.search(namespace, text, day)]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)
