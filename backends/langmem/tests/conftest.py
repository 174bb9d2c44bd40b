"""The backend as a process in its own environment, before a scripted extractor; it embeds by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest
from memarena.execution.backends.manifests import load_manifest
from memarena_proto import memory_backend_pb2 as pb

from backends.langmem.tests.scripted_extractor import MODEL, ScriptedExtractor, by_rules
from tests.backends.support import CALL_TIMEOUT_S, Served, connect, make_day, make_query

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # what needs no LangMem is tested where the backend is not installed
START_S = 120.0
EXTRACTOR = pb.Model(name=MODEL, role=pb.MODEL_ROLE_EXTRACTOR)


def _lacking() -> str | None:
    if os.environ.get("MEMARENA_SYSTEMS_TEST") != "1":
        return "MEMARENA_SYSTEMS_TEST=1 is not set: backends with environments of their own are not started"
    return BACKEND.missing()


LACKING = _lacking()
"""Why the backend cannot be started; None if it can."""


@dataclass
class Running:
    """The backend, a client of it, and the models that it is offered. Every call has a token of its own."""

    served: Served
    process: subprocess.Popen[bytes]
    base_url: str
    offered: tuple[pb.Model, ...] = (EXTRACTOR,)
    issued: list[str] = field(default_factory=list)

    def access(self) -> pb.ModelAccess:
        self.issued.append(f"token-{len(self.issued)}")
        return pb.ModelAccess(base_url=self.base_url, token=self.issued[-1], models=self.offered)

    def ingest(
        self, namespace: str, day: int, *sessions: pb.Session, timeout_s: float = CALL_TIMEOUT_S
    ) -> dict[str, int]:
        """Send a day; the counts of its notices by code."""
        frames = make_day(namespace, day, sessions)
        frames[0].header.model_access.CopyFrom(self.access())
        return {notice.code: notice.count for notice in self.served.ingest(frames, timeout_s).notices}

    def search(self, namespace: str, text: str, day: int) -> list[pb.MemoryItem]:
        return list(self.served.search(make_query(namespace, text, day, model_access=self.access())).items)

    def texts(self, namespace: str, text: str, day: int) -> list[str]:
        return [item.text for item in self.search(namespace, text, day)]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


@contextmanager
def running(
    work_dir: Path, base_url: str, *, code: str = "", settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Running]:
    """Start the backend over ``work_dir/data``; its home, temporary and current folders are fresh ones.

    ``code`` is run in the backend's process before it.
    """
    address_file = work_dir / "address"
    address_file.unlink(missing_ok=True)
    for name in ("data", "home", "tmp", "current"):
        (work_dir / name).mkdir(exist_ok=True)
    start = f"{code}\nimport runpy; runpy.run_module('memarena_backend_langmem', run_name='__main__', alter_sys=True)"
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
            yield Running(served, process, base_url)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)


@pytest.fixture(scope="module")
def _extractor() -> Iterator[ScriptedExtractor]:
    with ScriptedExtractor() as serving:
        yield serving


@pytest.fixture
def extractor(_extractor: ScriptedExtractor) -> ScriptedExtractor:
    """It answers by its rules when a test begins, and has been asked nothing."""
    _extractor.reply = by_rules
    _extractor.bodies.clear()
    _extractor.tokens.clear()
    return _extractor


@pytest.fixture(scope="module")
def _backend(_extractor: ScriptedExtractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("langmem"), _extractor.base_url) as started:
        yield started


@pytest.fixture
def backend(_backend: Running, extractor: ScriptedExtractor) -> Running:
    """One process for a file: namespaces of tests differ."""
    _backend.base_url, _backend.offered = extractor.base_url, (EXTRACTOR,)
    return _backend
