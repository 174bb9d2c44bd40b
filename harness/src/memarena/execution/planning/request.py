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
    """The outcome of a run. ``left`` counts the questions of all cells that have no outcome.

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
    """The request for a run. If ``config`` is None, ``out`` is resumed with the configuration in its log."""

    out: Path
    config: RunConfig | None = None
    resume: bool = False
    security: Security = field(default_factory=Security)
    reader_api_key: str | None = None
    cell_token: str | None = None
    """Token for backends whose own server is configured once with it (SPEC.md MOD-8); None if there are none."""
    scoring_files: tuple[DataFiles, ...] = ()
    configuration: NamedConfiguration | None = None
    """The file that ``config`` was read from, if any."""
