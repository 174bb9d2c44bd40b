"""What a cell works with: the data set, its models, its settings, and the run that it reports to."""

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
    """Models beside the reader."""
    reader_client: ReaderClient


@dataclass(frozen=True)
class CellSettings:
    """What the user asked for, as far as it concerns a cell."""

    answer_timeout_s: float
    id_key: bytes
    infra_retries: int
    central_reading: bool
    search_days: tuple[int, ...] = ()
    """Numbers of days after which Search is timed apart from any question, ``searches`` times each."""
    searches: int = 0
    all_days_first: bool = False
    """The days of all egos come in before the first question of any is asked."""
    after_crash: Literal["verify", "fresh"] = "verify"
    lost_retries: int = 1
    deletions: int = 0
    """Targets of each kind of the deletion probe, by ego."""
    cell_token: str | None = None
    """Known beforehand to the server of a backend that is configured once."""

    @classmethod
    def of(cls, config: RunConfig, id_key: bytes, cell_token: str | None) -> CellSettings:
        """The settings of every cell of a run."""
        return cls(
            answer_timeout_s=config.deadlines_s.answer,
            id_key=id_key,
            infra_retries=config.infra_retries,
            central_reading=config.central_reading,
            search_days=config.search_days,
            searches=config.searches,
            all_days_first=config.protocol == "end_of_horizon",
            after_crash=config.after_crash,
            lost_retries=config.lost_retries,
            deletions=config.deletions,
            cell_token=cell_token,
        )


@dataclass(frozen=True)
class CellSetup:
    """Everything that a cell is given before it begins."""

    dataset: Dataset
    audits: LifeAudits
    models: CellModels
    settings: CellSettings


class CellHost(Protocol):
    """The run that a cell belongs to."""

    def append(self, *records: AnyRecord) -> None:
        """Write records to the log."""

    def heal_reader(self) -> None:
        """Bring a reader back that failed. Raises InfraError where that is not possible."""

    def opened(self) -> None:
        """The backend is up and has been checked."""

    def advance(self, what: Literal["question", "day"]) -> None:
        """A question was settled, or a day taken in."""
