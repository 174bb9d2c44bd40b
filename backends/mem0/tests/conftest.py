"""The backend as a process in its own environment, before scripted models."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from memarena.execution.backends.manifests import load_manifest
from memarena_proto import memory_backend_pb2 as pb

from backends.mem0.tests.scripted_models import EMBEDDER, EXTRACTOR, ScriptedModels
from tests.backends.support import CALL_TIMEOUT_S, Served, connect, make_day, make_query

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))
"""Where the tests run the backend is not installed, and what needs no Mem0 is tested nevertheless."""
START_S = 120.0
MODELS = (
    pb.Model(name=EXTRACTOR, role=pb.MODEL_ROLE_EXTRACTOR),
    pb.Model(name=EMBEDDER, role=pb.MODEL_ROLE_EMBEDDER),
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
        reply = self.served.ingest(frames, timeout_s)
        return {notice.code: notice.count for notice in reply.notices}

    def search(self, namespace: str, text: str, day: int, **options: str) -> list[pb.MemoryItem]:
        pairs = [pb.Option(key=key, value=value) for key, value in sorted(options.items())]
        request = make_query(namespace, text, day, model_access=self.access(), options=pairs)
        return list(self.served.search(request).items)

    def texts(self, namespace: str, text: str, day: int) -> list[str]:
        return [item.text for item in self.search(namespace, text, day)]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


@contextmanager
def running(
    variant: str, work_dir: Path, models: ScriptedModels, *, before: tuple[str, ...] = ("-m", "memarena_backend_mem0")
) -> Iterator[Running]:
    """Start a variant over ``work_dir/data``, with an empty home folder and an empty current one."""
    address_file = work_dir / "address"
    address_file.unlink(missing_ok=True)
    for name in ("data", "home", "current"):
        (work_dir / name).mkdir(exist_ok=True)
    command = [
        *(BACKEND.python, *before, "--variant", variant, "--listen", "127.0.0.1:0"),
        *("--address-file", str(address_file), "--data-dir", str(work_dir / "data")),
    ]
    environment = {"HOME": str(work_dir / "home"), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
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


@pytest.fixture(scope="module")
def models() -> Iterator[ScriptedModels]:
    with ScriptedModels() as serving:
        yield serving


@pytest.fixture(scope="module")
def _extracting(models: ScriptedModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running("mem0", tmp_path_factory.mktemp("mem0"), models) as started:
        yield started


@pytest.fixture
def extracting(_extracting: Running) -> Iterator[Running]:
    """The variant mem0; its models are as they were before the test."""
    models = _extracting.models
    reply, before = models.reply, models.before_embedding
    yield _extracting
    models.reply, models.before_embedding, models.embedding_status = reply, before, 200
    _extracting.offered = MODELS
