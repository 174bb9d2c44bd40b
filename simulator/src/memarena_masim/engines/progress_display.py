"""Shows the progress of the LLM engine: sessions, requests in flight, tokens, expected end."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memarena_masim.engines.model import Status

_LINES_EVERY = 50
"""Number of sessions between two lines of progress if there is no terminal for a bar."""


class EngineDisplay:
    """A bar on a terminal, a line now and then elsewhere. Use it as a context manager."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._began_s = time.monotonic()
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
        """Show that a day is finished."""
        if self._quiet:
            return
        if self._progress.disable:
            sys.stderr.write(f"{line}\n")
        else:
            self._progress.console.print(line, highlight=False)

    def status(self, status: Status) -> None:
        """Show that a session is finished. Called from the engine's thread."""
        done, total = status.sessions_done, status.sessions_planned
        self._progress.update(self._task, completed=done, total=total, flight=status.in_flight, tokens=status.tokens)
        if self._progress.disable and not self._quiet and done % _LINES_EVERY == 0:
            left_s = (time.monotonic() - self._began_s) / done * (total - done)
            sys.stderr.write(
                f"{done} of {total} sessions, {status.tokens:,} tokens, about {left_s / 60:.0f} minutes left\n"
            )
