"""Shows the progress of judging on standard error: a bar with tokens and expected cost, or a line every 15 seconds."""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from memarena.cli.progress import LINE_EVERY_S, Display
from memarena.log.records import BucketNamed, JudgingFailed, Verdict


class JudgeProgress(Display):
    """Shows one pass after the other, with a cost extrapolated from finished jobs."""

    def __init__(self) -> None:
        super().__init__()
        self._task: TaskID | None = None
        self._what = ""
        self._jobs = 0
        self._done = 0
        self._failed = 0
        self._tokens_before = 0
        self._usd_before = 0.0
        self._tokens = 0
        self._usd: float | None = None

    def begin(self, what: str, jobs: int) -> None:
        """Begin a pass over ``jobs`` jobs."""
        self._what, self._jobs, self._done, self._failed = what, jobs, 0, 0
        self._tokens_before, self._usd_before = self._tokens, self._usd or 0.0
        self._last_line_at = time.monotonic()
        if self._console.is_terminal:
            self._bars = Progress(
                TextColumn("{task.description:<10}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[cost]}"),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._task = self._bars.add_task(what, total=jobs, cost="")
            self._bars.start()

    def ended(self, record: Verdict | BucketNamed | JudgingFailed, tokens: int, usd: float | None) -> None:
        """Count a finished job; ``tokens`` and ``usd`` are totals so far."""
        self._done += 1
        self._failed += record.kind == "judging_failed"
        self._tokens, self._usd = tokens, usd
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, advance=1, cost=self.cost())
        elif time.monotonic() - self._last_line_at > LINE_EVERY_S:
            self._line(f"{self._what}: {self._done} of {self._jobs}; {self.cost()}")

    def end(self) -> None:
        """Remove the bar."""
        self.stop()

    def cost(self) -> str:
        """Return tokens and dollars in words, so far and as expected at the end of the pass."""
        share = self._jobs / self._done if self._done else 1.0
        tokens = self._tokens_before + (self._tokens - self._tokens_before) * share
        text = f"{self._tokens:,} of about {tokens:,.0f} tokens"
        if self._usd is not None:
            usd = self._usd_before + (self._usd - self._usd_before) * share
            text += f", ${self._usd:.3f} of about ${usd:.3f}"
        return text + (f", {self._failed} failed" if self._failed else "")
