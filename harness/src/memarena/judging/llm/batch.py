"""Judges a run with a model: jobs in parallel, each verdict appended to the log as soon as it is there.

A job whose verdict is in the log is not done again: a judging that was killed continues where it stopped and loses only
the calls that were under way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from memarena_answering.servers.asking import ChatServer

from memarena.judging.errors import JudgeError
from memarena.judging.llm.budget import Budget, BudgetSpentError, Ledger
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.llm.jobs import Job, OpenJobs, key_of
from memarena.judging.llm.judge import Patience, Talk
from memarena.judging.llm.request import Asker, Record
from memarena.log.store import LogWriter

_MIN_FAILURES_IN_A_ROW = 8
"""Failures in a row, at least, after which the server counts as down."""


class Watcher(Protocol):
    """Receives the progress of a judging."""

    def begin(self, what: str, jobs: int) -> None:
        """Start a pass over ``jobs`` jobs; ``what`` names it."""
        ...

    def ended(self, record: Record, tokens: int, usd: float | None) -> None:
        """Report that a job ended; tokens and dollars are those of the whole judging up to now."""
        ...

    def end(self) -> None:
        """Report that the pass is over, finished or not."""
        ...


@dataclass(frozen=True)
class Batch:
    """Settings of a judging of a run."""

    run_dir: Path
    judge: ModelJudge
    url: str
    api_key: str | None = None
    concurrency: int = 32
    """Jobs that are done at the same time."""
    repeats: int = 1
    """How often the judge is asked about each answer; more than once shows how stable its verdicts are."""
    buckets: bool = True
    """Whether there is a second pass, which asks why facts were withheld (``jobs.py``)."""
    patience: Patience = field(default_factory=Patience)
    budget: Budget = field(default_factory=Budget)


@dataclass
class Judged:
    """The result of a judging."""

    verdicts: int = 0
    buckets: int = 0
    handed_over: int = 0
    """Answers that the rules decided instead of the judge, for the reasons in ``request.py``."""
    failed: Counter[str] = field(default_factory=Counter)
    """Failures of the judge by cause."""
    open_jobs: int = 0
    """Jobs without a verdict or bucket, failures included."""
    stopped: str = ""
    """Why it ended before all jobs were tried; empty if it did not."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None

    def count(self, record: Record) -> None:
        """Count how a job ended."""
        if record.kind == "judging_failed":
            self.failed[record.cause] += 1
            return
        self.open_jobs -= 1
        self.handed_over += bool(record.handed_over)
        self.verdicts += record.kind == "verdict"
        self.buckets += record.kind == "bucket"


def judge_with_model(batch: Batch, watcher: Watcher) -> Judged:
    """Judge every answer that has no verdict of this judge yet, and append the verdicts to the run's log.

    Raises:
        JudgeError: bad settings, a name that another judge has, a key or model that the server refuses.
        LogError: the log cannot be read, or another process writes it.
        LogFullError: it cannot be written.
    """
    with LogWriter.of_run(batch.run_dir) as log:
        return asyncio.run(_judge(batch, watcher, log))


async def _judge(batch: Batch, watcher: Watcher, log: LogWriter) -> Judged:
    """Do the jobs of both passes, and write each record to the log."""
    ledger = Ledger(batch.budget)
    judged = Judged()
    jobs = OpenJobs(batch.run_dir, batch.judge, batch.repeats)

    def keep(job: Job, record: Record) -> None:
        log.append(record)
        judged.count(record)
        # The second pass needs the labels of the first.
        if record.kind == "verdict" and record.label is not None:
            jobs.labels[key_of(job)] = record.label

    async with ChatServer(batch.url, batch.api_key, batch.patience.timeout_s, JudgeError) as endpoint:
        asker = Asker(batch.judge, Talk(batch.judge, endpoint, batch.patience, ledger), ledger)
        for name, jobs_of in (("answers", jobs.first_pass), ("grounds", jobs.second_pass))[: 2 if batch.buckets else 1]:
            pending = jobs_of()
            judged.open_jobs += len(pending)
            if pending and not judged.stopped:
                judged.stopped = await Pass(asker, watcher, ledger, batch.concurrency).over(name, pending, keep)
    judged.prompt_tokens, judged.completion_tokens = ledger.prompt_tokens, ledger.completion_tokens
    judged.usd = ledger.usd
    return judged


class Pass:
    """Workers that do jobs in parallel, until the budget is spent or only failures come.

    The server counts as down after as many failures in a row as there are workers, and at least eight. Answers that the
    rules decided without a call neither count as failures nor interrupt a row of them.
    """

    def __init__(self, asker: Asker, watcher: Watcher, ledger: Ledger, concurrency: int) -> None:
        self._asker = asker
        self._watcher = watcher
        self._ledger = ledger
        self._concurrency = concurrency
        self._in_a_row = 0
        self._stopped = ""

    async def over(self, what: str, jobs: Sequence[Job], keep: Callable[[Job, Record], None]) -> str:
        """Do the jobs and keep each record. Return why it ended before all were tried, or an empty text.

        Raises JudgeError if the server can never answer.
        """
        self._watcher.begin(what, len(jobs))
        queue = iter(jobs)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._concurrency, len(jobs))):
                    group.create_task(self._work(queue, keep))
        except* JudgeError as errors:
            raise _first_error(errors) from None
        finally:
            self._watcher.end()
        return self._stopped

    async def _work(self, queue: Iterator[Job], keep: Callable[[Job, Record], None]) -> None:
        """Take jobs from the common queue until it is empty or the pass has stopped."""
        for job in queue:
            if self._stopped:
                return
            try:
                record = await self._asker.do(job)
            except BudgetSpentError:
                self._stopped = self._stopped or "the budget is spent"
                return
            keep(job, record)
            self._count(record)
            tokens = self._ledger.prompt_tokens + self._ledger.completion_tokens
            self._watcher.ended(record, tokens, self._ledger.usd)

    def _count(self, record: Record) -> None:
        if record.kind != "judging_failed":
            # A record that the rules decided says nothing of the server: the row goes on.
            self._in_a_row = self._in_a_row if record.handed_over else 0
            return
        self._in_a_row += 1
        if self._in_a_row >= max(_MIN_FAILURES_IN_A_ROW, self._concurrency) and not self._stopped:
            self._stopped = f"{self._in_a_row} answers in a row could not be judged; the last: {record.message}"


def _first_error(errors: BaseExceptionGroup[JudgeError]) -> JudgeError:
    """Return the first of the errors that several workers met."""
    first = errors.exceptions[0]
    return _first_error(first) if isinstance(first, BaseExceptionGroup) else first
