"""The backend as a process in its own environment, before scripted models."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from memarena.execution.backends.manifests import load_manifest
from memarena_proto import memory_backend_pb2 as pb

from backends.graphiti.tests.scripted_model import CHAT_MODEL, EMBEDDING_MODEL, ScriptedModels
from tests.backends.support import CALL_TIMEOUT_S, Served, connect, make_day, make_query

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # what needs no Graphiti is tested where the backend is not installed
START_S = 120.0
MODELS = (
    pb.Model(name=CHAT_MODEL, role=pb.MODEL_ROLE_EXTRACTOR),
    pb.Model(name=EMBEDDING_MODEL, role=pb.MODEL_ROLE_EMBEDDER),
)


def _lacking() -> str | None:
    if os.environ.get("MEMARENA_SYSTEMS_TEST") != "1":
        return "MEMARENA_SYSTEMS_TEST=1 is not set: backends with environments of their own are not started"
    return BACKEND.missing()


LACKING = _lacking()
"""Why the backend cannot be started here, None if it can."""


def refused(act: Callable[[], object]) -> grpc.RpcError:
    """The error that a call ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        act()
    return caught.value


@dataclass
class Running:
    """The backend, a client of it, and the models that it is offered. Every call has a token of its own."""

    served: Served
    process: subprocess.Popen[bytes]
    models: ScriptedModels
    offered: tuple[pb.Model, ...] = MODELS
    issued: list[str] = field(default_factory=list)

    def access(self) -> pb.ModelAccess:
        self.issued.append(f"token-{len(self.issued)}")
        return pb.ModelAccess(base_url=self.models.base_url, token=self.issued[-1], models=self.offered)

    def ingest(
        self, namespace: str, day: int, *sessions: pb.Session, timeout_s: float = CALL_TIMEOUT_S
    ) -> dict[str, int]:
        """Send a day; the counts of its notices by code."""
        frames = make_day(namespace, day, sessions)
        frames[0].header.model_access.CopyFrom(self.access())
        return {notice.code: notice.count for notice in self.served.ingest(frames, timeout_s).notices}

    def search(self, namespace: str, text: str, day: int, **options: str) -> list[pb.MemoryItem]:
        pairs = [pb.Option(key=key, value=value) for key, value in sorted(options.items())]
        request = make_query(namespace, text, day, model_access=self.access(), options=pairs)
        return list(self.served.search(request).items)

    def facts(self, namespace: str, day: int) -> list[str]:
        """Texts of the facts about dogs, in the order of the alphabet."""
        return sorted(item.text for item in self.search(namespace, "What is my dog called?", day, entities="0"))


@contextmanager
def running(
    work_dir: Path,
    models: ScriptedModels,
    settings: Mapping[str, str] | None = None,
    *,
    before: tuple[str, ...] = (),
) -> Iterator[Running]:
    """Start the backend over ``work_dir/data``, with an empty home folder and an empty current one.

    ``before`` are the words of a program that starts it in the place of this one.
    """
    address_file = work_dir / "address"
    address_file.unlink(missing_ok=True)
    for name in ("data", "home", "current"):
        (work_dir / name).mkdir(exist_ok=True)
    command = [
        *(*before, BACKEND.python, "-m", "memarena_backend_graphiti", "--listen", "127.0.0.1:0"),
        *("--address-file", str(address_file), "--data-dir", str(work_dir / "data")),
    ]
    environment = {
        "HOME": str(work_dir / "home"),
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        **(settings or {}),
    }
    log = work_dir / "stderr.log"
    with log.open("ab") as stderr:
        process = subprocess.Popen(command, stderr=stderr, env=environment, cwd=work_dir / "current")
    try:
        give_up_at = time.monotonic() + START_S
        while not address_file.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up_at, "the backend did not write its address"
            time.sleep(0.02)
        with connect(address_file.read_text().strip()) as served:
            yield Running(served, process, models)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)


@pytest.fixture
def models() -> Iterator[ScriptedModels]:
    with ScriptedModels() as serving:
        yield serving


@pytest.fixture
def backend(tmp_path: Path, models: ScriptedModels) -> Iterator[Running]:
    with running(tmp_path, models) as started:
        yield started
