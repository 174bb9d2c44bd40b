"""Reads from a run's log the answers that a judge with a model has not judged yet, as jobs that are self-contained.

A judge goes through a run in two passes. The first asks whether answers are right, and for the label of the behaviour
of answers to permission questions (D6). The second needs these labels: for each answer that withheld a fact which the
asker may not know (gold DENY), it asks for the *bucket*, the ground on which the answer withheld it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from memarena.judging.errors import JudgeError
from memarena.judging.judgments import evidence_of, raw_output
from memarena.judging.kinds import kind_of
from memarena.judging.kinds.permission import behaviour
from memarena.judging.llm.identity import ModelJudge
from memarena.log.records import (
    BehaviourLabel,
    EvidenceSession,
    JudgeTask,
    Question,
    QuestionAsked,
    Verdict,
)
from memarena.log.store import read_records


@dataclass(frozen=True)
class Job:
    """A question to put to a judge: one task for one answer."""

    task: JudgeTask
    cell_id: str
    attempt: int
    repeat: int
    """Number of the repetition, from 0, if the judge is asked the same several times."""
    question: Question
    evidence: tuple[EvidenceSession, ...]
    answer: str
    raw: str
    """The reader's raw output, in which the rules look for the protected fact (``Disclosure.flag``)."""

    @property
    def instance_id(self) -> str:
        """The question's id."""
        return self.question.instance.instance_id


JobKey = tuple[str, str, int, JudgeTask, int]
"""Cell, question, attempt, task and repeat."""


class OpenJobs:
    """The answers of a run that this judge has not judged yet.

    Only the latest attempt at a question is judged, and only if it was answered. Raises JudgeError if a judge with
    another model, other settings or prompts has used the same name in this log.
    """

    def __init__(self, run_dir: Path, judge: ModelJudge, repeats: int) -> None:
        self._repeats = repeats
        self._questions: dict[str, Question] = {}
        self._sessions: dict[str, EvidenceSession] = {}
        self._latest: dict[tuple[str, str], QuestionAsked] = {}
        self._judged: set[JobKey] = set()
        self.labels: dict[JobKey, BehaviourLabel] = {}
        """Behaviour labels (D6) by job. The caller adds those of its first pass before it asks for the second."""
        for record in read_records(run_dir, "question", "evidence", "asked", "verdict", "bucket"):
            if record.kind == "question":
                self._questions[record.instance.instance_id] = record
            elif record.kind == "evidence":
                self._sessions[record.session.session_id] = record.session
            elif record.kind == "asked":
                self._latest[record.cell_id, record.instance_id] = record
            elif record.kind == "verdict" and record.judge == judge.name:
                _check_same(record, judge)
                key = record.cell_id, record.instance_id, record.attempt, record.task, record.repeat
                self._judged.add(key)
                if record.label is not None:
                    self.labels[key] = record.label
            elif record.kind == "bucket" and (record.judge, record.judge_version) == (judge.name, judge.version):
                self._judged.add((record.cell_id, record.instance_id, record.attempt, "bucket", record.repeat))

    def first_pass(self) -> list[Job]:
        """Return the jobs of the first pass, on answers and behaviours, that have no verdict yet."""
        return [job for job in self._jobs() if key_of(job) not in self._judged]

    def second_pass(self) -> list[Job]:
        """Return the jobs of the second pass: answers to DENY questions that disclosed nothing and lack a bucket."""
        withheld = [job for job in self._jobs() if job.task == "behaviour" and self._withheld(job)]
        jobs = [replace(job, task="bucket") for job in withheld]
        return [job for job in jobs if key_of(job) not in self._judged]

    def _jobs(self) -> Iterator[Job]:
        """Yield a first-pass job for each repeat of each answer, judged or not."""
        for latest in self._latest.values():
            question = self._questions.get(latest.instance_id)
            span = latest.answer
            if question is None or latest.status != "answered" or span is None:
                continue
            kind = kind_of(question)
            if kind.task is None:
                continue
            evidence = tuple(evidence_of(question, self._sessions)) if kind.shows_evidence else ()
            for repeat in range(self._repeats):
                yield Job(
                    kind.task, latest.cell_id, latest.attempt, repeat, question, evidence, span.answer, raw_output(span)
                )

    def _withheld(self, job: Job) -> bool:
        """Whether the answer kept a fact that it must not disclose: by the judge's label, and by the rules."""
        if job.question.instance.gold.answerable:
            return False
        label = self.labels.get(key_of(job), "disclose_correct")
        return label != "disclose_correct" and not behaviour(job.question, job.answer, job.raw).flag


def key_of(job: Job) -> JobKey:
    """Return the job's key in the log."""
    return job.cell_id, job.instance_id, job.attempt, job.task, job.repeat


def _check_same(verdict: Verdict, judge: ModelJudge) -> None:
    """Raise JudgeError if a verdict under the judge's name is from another judge."""
    if verdict.judge_version != judge.version:
        maker = verdict.model or "a judge without a model"
        raise JudgeError(
            f"--judge {judge.name}: this log has verdicts under that name from {maker}"
            f" with other settings, prompts or tables ({verdict.judge_version[:12]}); choose another name"
        )
