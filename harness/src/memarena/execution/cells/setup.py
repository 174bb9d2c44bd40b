"""Defines the input of a cell: the data set, its models, the configuration, and the run that it reports to."""

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
    """Models other than the reader."""
    reader_client: ReaderClient


@dataclass(frozen=True)
class CellSetup:
    """The input of a cell."""

    dataset: Dataset
    audits: LifeAudits
    models: CellModels
    config: RunConfig
    id_key: bytes
    """Key of the opaque ids: that of the manifest, even if the configuration has none."""
    cell_token: str | None = None
    """Token known in advance to the server of a backend that is configured once; else None."""


class CellHost(Protocol):
    """The run that a cell belongs to."""

    def append(self, *records: AnyRecord) -> None:
        """Write records to the log."""

    def heal_reader(self) -> None:
        """Restart a reader that failed. Raises InfraError if that is not possible."""

    def opened(self) -> None:
        """Note that the backend runs and has been checked."""

    def advance(self, what: Literal["question", "day"]) -> None:
        """Note that a question has an outcome, or a day was ingested."""
