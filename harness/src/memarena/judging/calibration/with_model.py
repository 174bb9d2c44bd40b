"""Asks a judge with a model about synthetic answers, by the same way as about a run's, without a log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memarena.judging.calibration.synthetic_answers import SyntheticAnswer
from memarena.judging.llm.batch import Pass, Watcher
from memarena.judging.llm.budget import Budget, Ledger
from memarena.judging.llm.endpoint import Endpoint, Patience
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.llm.jobs import Job
from memarena.judging.llm.judge import Talk
from memarena.judging.llm.request import Asker, Record


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
    return asyncio.run(
        _ask(synthetic, watcher, judge, Endpoint(url, api_key, patience.timeout_s), concurrency, patience, budget)
    )


async def _ask(
    synthetic: Sequence[SyntheticAnswer],
    watcher: Watcher,
    judge: ModelJudge,
    endpoint: Endpoint,
    concurrency: int,
    patience: Patience,
    budget: Budget,
) -> JudgeWords:
    ledger = Ledger(budget)
    words = JudgeWords([None] * len(synthetic))
    jobs = [
        Job("answer", "", n, 0, one.question, one.evidence, one.answer, one.answer) for n, one in enumerate(synthetic)
    ]

    def keep(job: Job, record: Record) -> None:
        if record.kind == "verdict":
            words.said[job.attempt] = record.correct
        elif record.kind == "judging_failed":
            words.failed[record.cause] += 1

    async with endpoint:
        asker = Asker(judge, Talk(judge, endpoint, patience, ledger), ledger)
        words.stopped = await Pass(asker, watcher, ledger, concurrency).over("synthetic", jobs, keep)
    words.prompt_tokens, words.completion_tokens = ledger.prompt_tokens, ledger.completion_tokens
    words.usd = ledger.usd
    return words
