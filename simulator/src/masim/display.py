"""What is shown while a model writes: sessions, requests in flight, tokens, expected end."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from masim.engines.model import Status

_LINES_EVERY = 50
"""Sessions between two lines where there is no terminal to draw a bar on."""


class EngineDisplay:
    """A bar on a terminal, a line now and then elsewhere. Use it as a context manager.

    ``days`` are those that have no words yet; how many sessions they have is guessed from those planned so far.
    """

    def __init__(self, days: int, *, quiet: bool) -> None:
        self._days, self._quiet = days, quiet
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[flight]} in flight, {task.fields[tokens]:,} tokens, ends in"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            disable=quiet or not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("sessions", total=None, flight=0, tokens=0)

    def __enter__(self) -> EngineDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def day(self, line: str) -> None:
        """A day is finished."""
        if self._quiet:
            return
        if self._progress.disable:
            sys.stderr.write(f"{line}\n")
        else:
            self._progress.console.print(line, highlight=False)

    def status(self, status: Status) -> None:
        """A session is finished. Called from the engine's thread."""
        total = round(status.sessions_planned * max(1.0, self._days / max(1, status.days_planned)))
        self._progress.update(
            self._task, completed=status.sessions_done, total=total, flight=status.in_flight, tokens=status.tokens
        )
        if self._progress.disable and not self._quiet and status.sessions_done % _LINES_EVERY == 0:
            sys.stderr.write(f"{status.sessions_done} of about {total} sessions, {status.tokens:,} tokens\n")
