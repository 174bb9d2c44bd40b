"""Runs the backend memos as a process in its own environment, and gives tests a client of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memarena.execution.backends.manifests import load_manifest
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.own_environment import MODELS, NOTHING, lacking, started
from tests.backends.support import Served, make_query, make_session
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parent.parent
BACKEND = load_manifest(FOLDER / "backend.toml")[0]


def reason_to_skip() -> str | None:
    """Return in one line why tests of the real library cannot run; None if they can."""
    return lacking(BACKEND)


@dataclass
class Running:
    """A backend that runs in ``folder``, with its data and log below it and a scripted model."""

    folder: Path
    model: ModelServer
    process: subprocess.Popen[bytes]
    served: Served
    _namespaces: set[str] = field(default_factory=set)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def log(self) -> str:
        return (self.folder / "stderr.log").read_text()

    def access(self, models: Sequence[pb.Model] = MODELS) -> pb.ModelAccess:
        return pb.ModelAccess(base_url=self.model.base_url, token="of-this-call", models=models)  # noqa: S106 (no secret)

    def ingest(
        self, day: Sequence[pb.IngestRequest], models: Sequence[pb.Model] = MODELS, timeout_s: float = 60.0
    ) -> dict[str, int]:
        """Ingest a day with access to models; return the counts of its notices by code."""
        return {code: notice.count for code, notice in self.notices(day, models, timeout_s).items()}

    def notices(
        self, day: Sequence[pb.IngestRequest], models: Sequence[pb.Model] = MODELS, timeout_s: float = 60.0
    ) -> dict[str, pb.Notice]:
        """Ingest a day as ``ingest`` does; return its notices by code."""
        first_frame = pb.IngestRequest.FromString(day[0].SerializeToString())
        first_frame.header.model_access.CopyFrom(self.access(models))
        self._namespaces.add(first_frame.header.namespace)
        return {notice.code: notice for notice in self.served.ingest([first_frame, *day[1:]], timeout_s).notices}

    def search(
        self, namespace: str, as_of_day: int, text: str = "What is called what?", **fields: object
    ) -> list[pb.MemoryItem]:
        query = make_query(namespace, text, as_of_day, **{"model_access": self.access(), **fields})
        return list(self.served.search(query).items)

    def texts(self, namespace: str, as_of_day: int) -> list[str]:
        return sorted(item.text for item in self.search(namespace, as_of_day))

    def forget_all(self) -> None:
        """Reset all ingested namespaces, and the model's script."""
        while self._namespaces:
            self.served.reset(self._namespaces.pop())
        self.model.rehearse()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


@contextmanager
def running(folder: Path, model: ModelServer, settings: Mapping[str, str] = NOTHING) -> Iterator[Running]:
    """Start the backend with the data in ``folder``; kill it at the end."""
    with started((BACKEND.python, "-m", "memarena_backend_memos"), folder, settings) as (served, process):
        yield Running(folder, model, process, served)


def names_pet(session_id: str, pet: str, name: str, *, day: int = 0) -> pb.Session:
    """Return a session in which the owner states the name of a pet, so that a single memory can be extracted."""
    return make_session(session_id, [f"My {pet} is called {name}.", "How lovely!"], day=day)


def memory_of(pet: str, name: str) -> str:
    """Return the memory that the scripted model extracts from ``names_pet``."""
    return f"The {pet} of Maya Chen is called {name}"


def all_written(folder: Path) -> Iterable[Path]:
    """Return the files below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]
