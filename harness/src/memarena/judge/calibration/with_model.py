"""Asks a judge with a model about planted answers, by the same way as about a run's, without a log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memarena.judge.calibration.planting import Planted
from memarena.judge.model.asking import Asker
from memarena.judge.model.budget import Budget, BudgetSpentError, Ledger
from memarena.judge.model.endpoint import Endpoint, Patience
from memarena.judge.model.identity import ModelJudge
from memarena.judge.model.jobs import BehaviourRules, Job
from memarena.judge.model.talk import Talk


def ask_about_planted(
    planted: Sequence[Planted],
    judge: ModelJudge,
    url: str,
    api_key: str | None,
    *,
    concurrency: int,
    patience: Patience,
    budget: Budget,
    rules: BehaviourRules,
) -> list[bool | None]:
    """The judge's word on each planted answer, None where it failed or the budget was spent.

    Raises JudgeError if the server can never answer.
    """
    return asyncio.run(
        _ask_all(planted, judge, Endpoint(url, api_key, patience.timeout_s), concurrency, patience, budget, rules)
    )


async def _ask_all(
    planted: Sequence[Planted],
    judge: ModelJudge,
    endpoint: Endpoint,
    concurrency: int,
    patience: Patience,
    budget: Budget,
    rules: BehaviourRules,
) -> list[bool | None]:
    words: list[bool | None] = [None] * len(planted)
    queue = iter(enumerate(planted))
    async with endpoint:
        ledger = Ledger(budget)
        asker = Asker(judge, Talk(judge, endpoint, patience, ledger), ledger, rules)

        async def work() -> None:
            for number, one in queue:
                job = Job("answer", "", 0, 0, one.question, one.evidence, one.answer, one.answer)
                try:
                    record = await asker.settle(job)
                except BudgetSpentError:
                    return
                words[number] = record.correct if record.kind == "verdict" else None

        await asyncio.gather(*(work() for _ in range(min(concurrency, len(planted)))))
    return words
