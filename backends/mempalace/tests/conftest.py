"""The backend as a process in its own environment, before scripted embedders."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from memarena.execution.backends.manifests import load_manifest
from memarena.readers.scripted import NullReader, Script
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import CALL_TIMEOUT_S, Served, connect, make_day, make_query

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # what needs no MemPalace is tested where the backend is not installed
START_S = 120.0
EMBEDDER = "null-embedder"
IN_PROCESS = {"MEMARENA_MEMPALACE_EMBEDDER": "process"}


def _lacking() -> str | None:
    if os.environ.get("MEMARENA_SYSTEMS_TEST") != "1":
        return "MEMARENA_SYSTEMS_TEST=1 is not set: backends with environments of their own are not started"
    return BACKEND.missing()


LACKING = _lacking()
"""Why the backend cannot be started; None if it can."""


@dataclass
class Running:
    """The backend and a client of it, which offers ``embedder`` with every call where there is one."""

    served: Served
    process: subprocess.Popen[bytes]
    embedder: NullReader | None = None
    model: str = EMBEDDER
    """The name by which the embedder is offered."""
    calls: int = 0

    def access(self) -> pb.ModelAccess | None:
        if self.embedder is None:
            return None
        self.calls += 1
        model = pb.Model(name=self.model, role=pb.MODEL_ROLE_EMBEDDER)
        return pb.ModelAccess(base_url=self.embedder.base_url, token=f"token-{self.calls}", models=[model])

    def ingest(
        self,
        namespace: str,
        day: int,
        *sessions: pb.Session,
        events: tuple[pb.Event, ...] = (),
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> dict[str, int]:
        """Send a day; the counts of its notices by code."""
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

    def embedded(self) -> list[str]:
        """Texts that the embedder was given so far."""
        sent = [each.body["input"] for each in self.embedder.received] if self.embedder else []
        return [str(text) for texts in sent if isinstance(texts, list) for text in texts]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


@contextmanager
def running(
    work_dir: Path,
    embedder: NullReader | None = None,
    *,
    code: str = "",
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Running]:
    """Start the backend over ``work_dir/data``; its home, temporary and current folders are fresh ones.

    ``code`` is run in the backend's process before it.
    """
    address_file = work_dir / "address"
    address_file.unlink(missing_ok=True)
    for name in ("data", "home", "tmp", "current"):
        (work_dir / name).mkdir(exist_ok=True)
    start = f"{code}\nimport runpy; runpy.run_module('memarena_backend_mempalace', run_name='__main__', alter_sys=True)"
    command = [
        *(BACKEND.python, "-c", start, "--listen", "127.0.0.1:0"),
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
        process = subprocess.Popen(command, stderr=stderr, env=environment, cwd=work_dir / "current")
    try:
        give_up_at = time.monotonic() + START_S
        while not address_file.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up_at, "the backend did not write its address"
            time.sleep(0.02)
        with connect(address_file.read_text().strip()) as served:
            yield Running(served, process, embedder)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)


@pytest.fixture
def embedder() -> Iterator[NullReader]:
    with NullReader(model=EMBEDDER) as serving:
        yield serving


@pytest.fixture(scope="module")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("gateway")) as started:
        yield started


@pytest.fixture
def gateway(_served: Running, embedder: NullReader) -> Running:
    """The backend before a scripted embedder of this test's own. It is one process for a file: namespaces differ."""
    _served.embedder, _served.model = embedder, EMBEDDER
    return _served


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The backend with the model inside it, and offered none."""
    with running(tmp_path_factory.mktemp("alone"), settings=IN_PROCESS) as started:
        yield started


FAILING = Script(fault="status", status=503)
