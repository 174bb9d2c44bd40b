"""Defines the request for a run, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memarena.client.backend import Security
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.plan import DataFiles
from memarena.log.records import NamedConfiguration

EndReason = Literal["completed", "incomplete", "interrupted", "aborted"]


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run, from which the CLI derives its last lines and its exit code."""

    reason: EndReason
    left: int
    """Number of questions of all cells that have no outcome."""
    message: str = ""
    failed_cells: tuple[str, ...] = ()
    """Ids of the cells in which the backend failed every question."""
    unread_cells: tuple[str, ...] = ()
    """Ids of the cells with questions whose prompt the reader did not understand."""
    cells: int = 0
    """Number of cells of the run."""
    non_answers: tuple[str, ...] = ()
    """A line for each cell with many answers that say nothing."""


@dataclass(frozen=True)
class RunRequest:
    """The request for a run. If ``config`` is None, ``out`` is resumed with the configuration in its log."""

    out: Path
    config: RunConfig | None = None
    resume: bool = False
    security: Security = field(default_factory=Security)
    reader_api_key: str | None = None
    cell_token: str | None = None
    """Token for backends whose own server is configured once with it (SPEC.md MOD-8); None if there are none."""
    scoring_files: tuple[DataFiles, ...] = ()
    """Hashes of the files that scoring uses, for the manifest: this package does not import scoring."""
    configuration: NamedConfiguration | None = None
    """The file that ``config`` was read from, if any."""
