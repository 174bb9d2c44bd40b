"""Shows the progress of a run on standard error: bars on a terminal, a line every 15 seconds elsewhere."""

from __future__ import annotations

import time

from memarena_dataset.printing import note, printable
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINE_EVERY_S = 15.0


class Display:
    """Base of displays: bars on a terminal, elsewhere lines, none of them twice in a row."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars: Progress | None = None
        self._last_line = ""
        self._last_line_at = 0.0

    def note(self, message: str) -> None:
        """Print a line, above the bars if there are any."""
        if self._bars is not None:
            self._bars.console.print(printable(message), markup=False)
        else:
            self._line(message)

    def stop(self) -> None:
        """Remove the bars."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def _line(self, text: str) -> None:
        self._last_line_at = time.monotonic()
        if text != self._last_line:
            self._last_line = text
            note(text)


class ProgressDisplay(Display):
    """Two bars, questions of the run and days of the cell; without a terminal a line every 15 seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._questions: TaskID | None = None
        self._days: TaskID | None = None
        self._cell = ""
        self._asked = 0
        self._total = 0

    def begin(self, total_questions: int, done_questions: int) -> None:
        """Show the questions still to be asked."""
        self._asked, self._total = done_questions, total_questions
        if self._console.is_terminal:
            self._bars = Progress(
                TextColumn("{task.description:<32}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._questions = self._bars.add_task("questions", total=total_questions, completed=done_questions)
            self._bars.start()
        elif done_questions:
            self._line(f"{done_questions} of {total_questions} questions are done already")

    def cell(self, name: str, days: int) -> None:
        """Begin a cell of ``days`` days."""
        self._cell = name
        if self._bars is not None:
            if self._days is not None:
                self._bars.remove_task(self._days)
            self._days = self._bars.add_task(f"days · {name}", total=days)
        else:
            self._line(f"cell {name}")

    def advance(self, what: str) -> None:
        """Count a question or a day."""
        if what == "question":
            self._asked += 1
        if self._bars is not None:
            task = self._questions if what == "question" else self._days
            if task is not None:
                self._bars.advance(task)
        elif time.monotonic() - self._last_line_at > LINE_EVERY_S:
            self._line(f"{self._cell}: {self._asked} of {self._total} questions")

    def end(self) -> None:
        """Remove the bars."""
        self.stop()
