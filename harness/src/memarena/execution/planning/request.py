"""A run to do, and how it ended."""

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
    """How a run ended. ``left`` counts the questions of all cells that have no outcome.

    ``failed_cells`` are those of ``cells`` in which the backend failed every question,
    ``unread_cells`` those with questions whose prompt the reader did not understand. ``non_answers``: a line for each
    cell with many answers that say nothing.
    """

    reason: EndReason
    left: int
    message: str = ""
    failed_cells: tuple[str, ...] = ()
    unread_cells: tuple[str, ...] = ()
    cells: int = 0
    non_answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRequest:
    """A run to do: ``config`` None means that ``out`` is resumed with the configuration in its log."""

    out: Path
    config: RunConfig | None = None
    resume: bool = False
    security: Security = field(default_factory=Security)
    reader_api_key: str | None = None
    cell_token: str | None = None
    """The token that the server of a backend was configured with, where that is done once (SPEC.md MOD-8)."""
    scoring_files: tuple[DataFiles, ...] = ()
    configuration: NamedConfiguration | None = None
    """The file that ``config`` was read from, if it was."""
