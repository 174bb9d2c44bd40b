"""What a cell works with: the data set, its models, the configuration, and the run that it reports to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from memarena_answering import ReaderClient
from memarena_dataset.io.reading import Dataset

from memarena.execution.audit.life_audit import LifeAudits
from memarena.execution.planning.config import RunConfig
from memarena.gateway import Gateway, Upstream
from memarena.log.records import AnyRecord
from memarena.readers.types import RunningReader


@dataclass(frozen=True)
class CellModels:
    """The models of a cell, all of them behind the gateway."""

    gateway: Gateway
    reader: RunningReader
    helpers: tuple[Upstream, ...]
    """Models besides the reader."""
    reader_client: ReaderClient


@dataclass(frozen=True)
class CellSetup:
    """Everything that a cell is given before it begins."""

    dataset: Dataset
    audits: LifeAudits
    models: CellModels
    config: RunConfig
    id_key: bytes
    """What opaque ids are made with: that of the manifest, also where the configuration has none."""
    cell_token: str | None = None
    """Known beforehand to the server of a backend that is configured once."""


class CellHost(Protocol):
    """The run that a cell belongs to."""

    def append(self, *records: AnyRecord) -> None:
        """Write records to the log."""

    def heal_reader(self) -> None:
        """Bring a reader back that failed. Raises InfraError where that is not possible."""

    def opened(self) -> None:
        """The backend is up and has been checked."""

    def advance(self, what: Literal["question", "day"]) -> None:
        """A question has an outcome, or a day was ingested."""
