"""Asks a judge with a model about synthetic answers, by the same way as about a run's, without a log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memarena.judging.calibration.synthetic_answers import SyntheticAnswer
from memarena.judging.errors import JudgeError
from memarena.judging.llm.batch import Watcher, first_error
from memarena.judging.llm.budget import Budget, BudgetSpentError, Ledger
from memarena.judging.llm.endpoint import Endpoint, Patience
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.llm.jobs import Job
from memarena.judging.llm.judge import Talk
from memarena.judging.llm.request import Asker, Record
from memarena.judging.llm.stopping import Streak


@dataclass
class JudgeWords:
    """A judge's word on each synthetic answer, in their order; None where it failed or was not asked any more."""

    said: list[bool | None]
    failed: Counter[str] = field(default_factory=Counter)
    """Failures of the judge by cause."""
    stopped: str = ""
    """Why it ended before all were asked; empty if it did not."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None

    @property
    def unjudged(self) -> int:
        """Answers without a word."""
        return self.said.count(None)


def ask_about_answers(
    synthetic: Sequence[SyntheticAnswer],
    watcher: Watcher,
    judge: ModelJudge,
    url: str,
    api_key: str | None,
    *,
    concurrency: int,
    patience: Patience,
    budget: Budget,
) -> JudgeWords:
    """Ask about every synthetic answer, unless the budget is spent or the server is not there.

    Raises JudgeError if the server can never answer.
    """
    endpoint = Endpoint(url, api_key, patience.timeout_s)
    ledger = Ledger(budget)
    asker = Asker(judge, Talk(judge, endpoint, patience, ledger), ledger)
    pass_ = _Pass(synthetic, asker, watcher, ledger, Streak(concurrency))
    return asyncio.run(pass_.over(endpoint, concurrency))


class _Pass:
    """Workers over the synthetic answers."""

    def __init__(
        self, synthetic: Sequence[SyntheticAnswer], asker: Asker, watcher: Watcher, ledger: Ledger, streak: Streak
    ) -> None:
        self._answers = synthetic
        self._asker = asker
        self._watcher = watcher
        self._ledger = ledger
        self._streak = streak
        self._words = JudgeWords([None] * len(synthetic))

    async def over(self, endpoint: Endpoint, concurrency: int) -> JudgeWords:
        """Ask side by side."""
        words = self._words
        queue = iter(enumerate(self._answers))
        self._watcher.begin("synthetic", len(self._answers))
        try:
            async with endpoint, asyncio.TaskGroup() as group:
                for _ in range(min(concurrency, len(self._answers))):
                    group.create_task(self._work(queue))
        except* JudgeError as errors:
            raise first_error(errors) from None
        finally:
            self._watcher.end()
        words.prompt_tokens, words.completion_tokens = self._ledger.prompt_tokens, self._ledger.completion_tokens
        words.usd = self._ledger.usd
        return words

    async def _work(self, queue: Iterator[tuple[int, SyntheticAnswer]]) -> None:
        for number, one in queue:
            if self._words.stopped:
                return
            job = Job("answer", "", 0, 0, one.question, one.evidence, one.answer, one.answer)
            try:
                record = await self._asker.settle(job)
            except BudgetSpentError:
                self._words.stopped = self._words.stopped or "the budget is spent"
                return
            self._count(number, record)

    def _count(self, number: int, record: Record) -> None:
        if record.kind == "verdict":
            self._words.said[number] = record.correct
        elif record.kind == "judging_failed":
            self._words.failed[record.cause] += 1
        stops = self._streak.add(record)
        self._words.stopped = self._words.stopped or stops
        tokens = self._ledger.prompt_tokens + self._ledger.completion_tokens
        self._watcher.settled(record, tokens, self._ledger.usd)
