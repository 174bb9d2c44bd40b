"""Shows the progress of the demonstration: one bar over all of its parts, with the time left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from memarena.cli.progress import Display

SLOW_DAY_S = 9.0
"""Seconds to embed a day of one ego's history on two cores."""
_LINE_EVERY_S = 20.0
_SLOW = "memsearch"


@dataclass(frozen=True)
class PartCosts:
    """Expected costs of a part, in seconds on two idle cores; only weights for the bar."""

    questions: int
    question_s: float
    slow_days: int
    """Days of history to be embedded."""

    @property
    def total_s(self) -> float:
        """Expected seconds of the part."""
        return self.questions * self.question_s + self.slow_days * SLOW_DAY_S


class DemoDisplay(Display):
    """One bar on a terminal; elsewhere at most a line every 20 seconds, none of them repeated."""

    def __init__(self) -> None:
        super().__init__()
        self._task: TaskID | None = None
        self._part = PartCosts(0, 0.0, 0)
        self._done_s = 0.0
        self._total_s = 0.0
        self._began_at = 0.0
        self._slow = False

    def start(self) -> None:
        """Show the bar, if there is a terminal."""
        if self._console.is_terminal:
            columns = (TextColumn("{task.description:<28}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._bars = Progress(*columns, console=self._console, speed_estimate_period=60, transient=True)
            self._task = self._bars.add_task("", total=None)
            self._bars.start()

    def plan(self, parts: Sequence[PartCosts]) -> None:
        """Set the parts to be done from now on."""
        self._total_s = sum(part.total_s for part in parts)
        self._began_at = time.monotonic()
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, total=self._total_s)

    def part(self, costs: PartCosts) -> None:
        """Begin a part."""
        self._part = costs

    def skip(self, costs: PartCosts) -> None:
        """Count a part that was done before."""
        self._add(costs.total_s)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the bar within the context, so that other text can be printed."""
        if self._bars is None:
            yield
            return
        self._bars.stop()
        try:
            yield
        finally:
            self._bars.start()

    def note_step(self, text: str) -> None:
        """Show what is being done now."""
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, description=text)
        else:
            self._line(text)

    # ------------------------------------------------------------------ what a run shows

    def begin(self, total_questions: int, done_questions: int) -> None:
        """Begin a run; questions answered before are counted."""
        self._add(done_questions * self._part.question_s)

    def cell(self, name: str, days: int) -> None:
        """Begin a cell."""
        self._slow = name.startswith(_SLOW)
        self.note_step(name.rpartition("/")[0].replace("@", ", "))

    def advance(self, what: str) -> None:
        """Count a question or a day."""
        self._add(self._part.question_s if what == "question" else SLOW_DAY_S if self._slow else 0.0)

    def end(self) -> None:
        """Do nothing: the bar continues with the next part."""

    def _add(self, seconds: float) -> None:
        self._done_s += seconds
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=self._done_s)
        elif self._total_s and time.monotonic() - self._last_line_at > _LINE_EVERY_S:
            self._line(f"{100 * min(1.0, self._done_s / self._total_s):.0f}% done{self._left()}")

    def _left(self) -> str:
        """Return the time left at the present speed, in words; empty if unknown."""
        took_s = time.monotonic() - self._began_at
        left_s = took_s * (self._total_s - self._done_s) / self._done_s if self._done_s else 0.0
        return f", about {left_s:.0f} s left" if left_s > 0 else ""
