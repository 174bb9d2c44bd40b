"""Progress of the demonstration: one bar over all of its parts, with the time left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from memarena.cli.progress import Display

SLOW_DAY_S = 9.0
"""Seconds for a day of one person's history through an embedder on two cores."""
_LINE_EVERY_S = 20.0
_SLOW = "memsearch"


@dataclass(frozen=True)
class PartCosts:
    """What a part is expected to take, in seconds on two idle cores: weights of the bar, no measurement."""

    questions: int
    question_s: float
    slow_days: int
    """Days of history that have to be embedded."""

    @property
    def total_s(self) -> float:
        """The whole part."""
        return self.questions * self.question_s + self.slow_days * SLOW_DAY_S


class DemoDisplay(Display):
    """One bar on a terminal; elsewhere at most a line every 20 seconds, none of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self._task: TaskID | None = None
        self._part = PartCosts(0, 0.0, 0)
        self._done_s = 0.0
        self._total_s = 0.0
        self._began_at = 0.0
        self._slow = False

    def start(self) -> None:
        """Show the bar, where there is a terminal."""
        if self._console.is_terminal:
            columns = (TextColumn("{task.description:<28}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._bars = Progress(*columns, console=self._console, speed_estimate_period=60, transient=True)
            self._task = self._bars.add_task("", total=None)
            self._bars.start()

    def plan(self, parts: Sequence[PartCosts]) -> None:
        """What is to be done from here on."""
        self._total_s = sum(part.total_s for part in parts)
        self._began_at = time.monotonic()
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, total=self._total_s)

    def part(self, costs: PartCosts) -> None:
        """A part begins."""
        self._part = costs

    def skip(self, costs: PartCosts) -> None:
        """A part was done before."""
        self._add(costs.total_s)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No bar meanwhile, so that something can be printed."""
        if self._bars is None:
            yield
            return
        self._bars.stop()
        try:
            yield
        finally:
            self._bars.start()

    def note_step(self, text: str) -> None:
        """What is being done now."""
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, description=text)
        else:
            self._line(text)

    # ------------------------------------------------------------------ what a run shows

    def begin(self, total_questions: int, done_questions: int) -> None:
        """A run goes through its cells; what was answered before counts."""
        self._add(done_questions * self._part.question_s)

    def cell(self, name: str, days: int) -> None:
        """A cell begins."""
        self._slow = name.startswith(_SLOW)
        self.note_step(name.rpartition("/")[0].replace("@", ", "))

    def advance(self, what: str) -> None:
        """Count a question or a day."""
        self._add(self._part.question_s if what == "question" else SLOW_DAY_S if self._slow else 0.0)

    def end(self) -> None:
        """Nothing: the bar goes on to the next part."""

    def _add(self, seconds: float) -> None:
        self._done_s += seconds
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=self._done_s)
        elif self._total_s and time.monotonic() - self._last_line_at > _LINE_EVERY_S:
            self._line(f"{100 * min(1.0, self._done_s / self._total_s):.0f}% done{self._left()}")

    def _left(self) -> str:
        """How long the rest takes at the speed so far."""
        took_s = time.monotonic() - self._began_at
        left_s = took_s * (self._total_s - self._done_s) / self._done_s if self._done_s else 0.0
        return f", about {left_s:.0f} s left" if left_s > 0 else ""
