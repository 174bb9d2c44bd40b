"""One judging of a run with a model: jobs side by side, each verdict in the log as soon as it is there.

What is in the log is never asked again, so a judging that was killed goes on where it stopped and loses no more than
the calls that were under way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from memarena.judging.errors import JudgeError
from memarena.judging.llm.budget import Budget, BudgetSpentError, Ledger
from memarena.judging.llm.endpoint import Endpoint, Patience
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.llm.jobs import Job, JobKey, bucket_jobs, key_of, open_jobs
from memarena.judging.llm.judge import Talk
from memarena.judging.llm.request import Asker, Record
from memarena.judging.llm.stopping import Streak
from memarena.log.records import BehaviourLabel
from memarena.log.store import LogWriter


class Watcher(Protocol):
    """Is told how a judging goes on."""

    def begin(self, what: str, jobs: int) -> None:
        """A pass over so many jobs begins."""
        ...

    def settled(self, record: Record, tokens: int, usd: float | None) -> None:
        """A job ended; tokens and dollars are those of the whole judging so far."""
        ...

    def end(self) -> None:
        """The pass is over, in whatever way."""
        ...


@dataclass(frozen=True)
class Batch:
    """How a run is judged."""

    run_dir: Path
    judge: ModelJudge
    url: str
    api_key: str | None = None
    concurrency: int = 32
    repeats: int = 1
    buckets: bool = True
    patience: Patience = field(default_factory=Patience)
    budget: Budget = field(default_factory=Budget)


@dataclass
class Judged:
    """What a judging did."""

    verdicts: int = 0
    buckets: int = 0
    handed_over: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Failures of the judge by cause."""
    left: int = 0
    """Jobs without a verdict or bucket, failures included."""
    stopped: str = ""
    """Why it ended before all jobs were tried; empty if it did not."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None


def judge_with_model(batch: Batch, watcher: Watcher) -> Judged:
    """Judge what has no verdict of this judge yet, and append it to the run's log.

    Raises:
        JudgeError: bad settings, a name that another judge has, a key or model that the server refuses.
        LogError: the log cannot be read, or another process writes it.
        LogFullError: it cannot be written.
    """
    with LogWriter.of_run(batch.run_dir) as log:
        return asyncio.run(_judge(batch, watcher, log))


async def _judge(batch: Batch, watcher: Watcher, log: LogWriter) -> Judged:
    ledger = Ledger(batch.budget)
    endpoint = Endpoint(batch.url, batch.api_key, batch.patience.timeout_s)
    judged = Judged()
    jobs, labels = open_jobs(batch.run_dir, batch.judge, batch.repeats)
    async with endpoint:
        asker = Asker(batch.judge, Talk(batch.judge, endpoint, batch.patience, ledger), ledger)
        await _Pass(batch, asker, watcher, log, ledger, judged, labels).over("answers", jobs)
        if batch.buckets:
            more = bucket_jobs(batch.run_dir, batch.judge, batch.repeats, labels)
            await _Pass(batch, asker, watcher, log, ledger, judged, labels).over("grounds", more)
    judged.prompt_tokens, judged.completion_tokens = ledger.prompt_tokens, ledger.completion_tokens
    judged.usd = ledger.usd
    return judged


class _Pass:
    """Workers over a list of jobs."""

    def __init__(
        self,
        batch: Batch,
        asker: Asker,
        watcher: Watcher,
        log: LogWriter,
        ledger: Ledger,
        judged: Judged,
        labels: dict[JobKey, BehaviourLabel],
    ) -> None:
        self._batch = batch
        self._asker = asker
        self._watcher = watcher
        self._log = log
        self._ledger = ledger
        self._judged = judged
        self._labels = labels
        self._streak = Streak(batch.concurrency)

    async def over(self, what: str, jobs: Sequence[Job]) -> None:
        """Settle the jobs, unless the judging has stopped or stops on the way."""
        self._judged.left += len(jobs)
        if self._judged.stopped or not jobs:
            return
        self._watcher.begin(what, len(jobs))
        queue = iter(jobs)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._batch.concurrency, len(jobs))):
                    group.create_task(self._work(queue))
        except* JudgeError as errors:
            raise first_error(errors) from None
        finally:
            self._watcher.end()

    async def _work(self, queue: Iterator[Job]) -> None:
        for job in queue:
            if self._judged.stopped:
                return
            try:
                record = await self._asker.settle(job)
            except BudgetSpentError:
                self._judged.stopped = self._judged.stopped or "the budget is spent"
                return
            self._log.append(record)
            self._count(job, record)

    def _count(self, job: Job, record: Record) -> None:
        judged = self._judged
        if record.kind == "judging_failed":
            judged.failed[record.cause] += 1
        else:
            judged.left -= 1
            judged.handed_over += bool(record.handed_over)
            if record.kind == "verdict":
                judged.verdicts += 1
                if record.label is not None:
                    self._labels[key_of(job)] = record.label
            else:
                judged.buckets += 1
        stops = self._streak.add(record)
        judged.stopped = judged.stopped or stops
        self._watcher.settled(record, self._ledger.prompt_tokens + self._ledger.completion_tokens, self._ledger.usd)


def first_error(errors: BaseExceptionGroup[JudgeError]) -> JudgeError:
    """One of the errors that several workers met."""
    found = errors.exceptions[0]
    return first_error(found) if isinstance(found, BaseExceptionGroup) else found
