"""Starts the process that watches a run's readers, and reads its observations."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from memarena.processes import GuardedProcess, ProcessError, python_module
from pydantic import ValidationError

from memarena_spark.facts import Unknown
from memarena_spark.watching.records import ReaderWatch, ReaderWatches

NAME = "readers.json"
_HASHING_S = 1800.0
"""Seconds that hashing the weights may take: 200 GB from a slow disk."""


class Watch:
    """Watches the readers of the run in ``out / run`` until :meth:`result`, at most as long as this process lives."""

    def __init__(self, out: Path, run: str) -> None:
        self._file, self._fault = out / NAME, ""
        self._process: GuardedProcess | None = None
        try:
            # Only file names, no paths: every process of a machine can read these arguments.
            command = python_module("memarena_spark.watching.watcher", run, NAME)
            self._process = GuardedProcess.start(command, log_path=out / "readers.log", cwd=out)
        except ProcessError as error:
            self._fault = str(error)

    def result(self) -> tuple[ReaderWatch, ...] | Unknown:
        """End the watch and return the observations of each reader; Unknown with the reason if there are none."""
        if self._process is None:
            return Unknown(unknown=self._fault)
        self._process.stop(_HASHING_S)
        try:
            return ReaderWatches.model_validate_json(self._file.read_bytes()).readers
        except (OSError, ValidationError):
            last = self._process.log_tail(1) or "it wrote no message"
            return Unknown(unknown=f"the process that watches the readers ended early: {last}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stop()
