"""Asks a judge with a model about answers that are in no log: those of a file, and synthetic ones.

For ``memarena judge --answers`` and ``--calibrate``. Results are returned and not logged, so each call starts from the
beginning.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memarena_answering.servers.asking import ChatServer

from memarena.judging.errors import JudgeError
from memarena.judging.judgment import Judgment, by_disclosure, of_verdict
from memarena.judging.kinds import kind_of
from memarena.judging.kinds.permission import behaviour
from memarena.judging.llm.batch import Pass, Watcher
from memarena.judging.llm.budget import Budget, Ledger
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.llm.jobs import Job
from memarena.judging.llm.judge import Patience, Talk
from memarena.judging.llm.request import Asker, Record
from memarena.log.records import BehaviourLabel, EvidenceSession, JudgingFailed, Question, Verdict


@dataclass(frozen=True)
class AskedJudge:
    """A judge with a model: where it is asked, how patiently, and with which budget."""

    judge: ModelJudge
    url: str
    api_key: str | None = None
    concurrency: int = 32
    patience: Patience = field(default_factory=Patience)
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class UnloggedAnswer:
    """An answer to be judged; ``raw`` is the reader's whole output for it."""

    question: Question
    evidence: tuple[EvidenceSession, ...]
    answer: str
    raw: str


@dataclass
class JudgeWords:
    """A judge's judgments of the answers, in their order; None if it failed, or stopped before the answer."""

    judgments: list[Judgment | None]
    failures: dict[int, JudgingFailed] = field(default_factory=dict)
    """Failures by index of the answer."""
    handed_over: int = 0
    """Answers that the rules decided instead of the model."""
    stopped: str = ""
    """Why it ended before all were asked; empty if it did not."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None

    @property
    def failed(self) -> Counter[str]:
        """Failures of the judge by cause."""
        return Counter(failure.cause for failure in self.failures.values())

    @property
    def correct(self) -> list[bool | None]:
        """Whether each answer is right."""
        return [None if judgment is None else judgment.correct for judgment in self.judgments]

    def label(self, index: int) -> BehaviourLabel | None:
        """Return the label that the model gave an answer to a D6 question; None if it gave none, or the rules did."""
        judgment = self.judgments[index]
        disclosure = None if judgment is None else judgment.disclosure
        return disclosure.label if disclosure is not None and disclosure.labelled_by == "judge" else None

    @property
    def unjudged(self) -> int:
        """Answers without a judgment."""
        return self.judgments.count(None)


def ask_about(answers: Sequence[UnloggedAnswer], access: AskedJudge, watcher: Watcher) -> JudgeWords:
    """Ask about every answer, until the budget is spent or the server counts as down.

    Raises JudgeError if the server can never answer.
    """
    return asyncio.run(_ask(answers, access, watcher))


async def _ask(answers: Sequence[UnloggedAnswer], access: AskedJudge, watcher: Watcher) -> JudgeWords:
    """Do a job for each answer, and collect the judgments by the answer's index."""
    ledger = Ledger(access.budget)
    words = JudgeWords([None] * len(answers))

    def keep(job: Job, record: Record) -> None:
        if record.kind == "verdict":
            words.judgments[job.attempt] = _judgment(answers[job.attempt], record)
            words.handed_over += bool(record.handed_over)
        elif record.kind == "judging_failed":
            words.failures[job.attempt] = record

    async with ChatServer(access.url, access.api_key, access.patience.timeout_s, JudgeError) as endpoint:
        asker = Asker(access.judge, Talk(access.judge, endpoint, access.patience, ledger), ledger)
        jobs = [_job(number, answer) for number, answer in enumerate(answers)]
        words.stopped = await Pass(asker, watcher, ledger, access.concurrency).over("answers", jobs, keep)
    words.prompt_tokens, words.completion_tokens = ledger.prompt_tokens, ledger.completion_tokens
    words.usd = ledger.usd
    return words


def _job(number: int, answer: UnloggedAnswer) -> Job:
    """Return the job of an answer, with its index in the field of the attempt.

    A D1 question, about which a run asks no model, gets the task ``answer``.
    """
    kind = kind_of(answer.question)
    evidence = () if kind.task is not None and not kind.shows_evidence else answer.evidence
    return Job(kind.task or "answer", "", number, 0, answer.question, evidence, answer.answer, answer.raw)


def _judgment(answer: UnloggedAnswer, verdict: Verdict) -> Judgment:
    """Return the judgment of a verdict. A behaviour label decides together with the leak that the rules see."""
    if verdict.label is None:
        return of_verdict(verdict)
    disclosure = behaviour(answer.question, answer.answer, answer.raw)
    by = "rules" if verdict.handed_over else "judge"
    return by_disclosure(disclosure.model_copy(update={"label": verdict.label, "labelled_by": by}))
