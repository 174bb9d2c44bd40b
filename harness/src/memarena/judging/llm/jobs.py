"""What there is to judge in a run: answers without a verdict of this judge, as jobs that need the log no more."""

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
    """One thing to ask a judge."""

    task: JudgeTask
    cell_id: str
    attempt: int
    repeat: int
    question: Question
    evidence: tuple[EvidenceSession, ...]
    answer: str
    raw: str
    """Everything that the reader put out, for the flag."""

    @property
    def instance_id(self) -> str:
        """The question's id."""
        return self.question.instance.instance_id


JobKey = tuple[str, str, int, JudgeTask, int]


class OpenJobs:
    """The answers of a run, and what this judge said of them already.

    Only the latest attempt at a question is judged, and only if it was answered. Raises JudgeError if another judge
    (model, settings, prompts) has used the same name in this log.
    """

    def __init__(self, run_dir: Path, judge: ModelJudge, repeats: int) -> None:
        self._repeats = repeats
        self._questions: dict[str, Question] = {}
        self._sessions: dict[str, EvidenceSession] = {}
        self._latest: dict[tuple[str, str], QuestionAsked] = {}
        self._judged: set[JobKey] = set()
        self.labels: dict[JobKey, BehaviourLabel] = {}
        """Labels of D6 so far; a judging adds its own."""
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

    def answers(self) -> list[Job]:
        """Jobs of the first pass, answers and behaviours, that have no verdict."""
        return [job for job in self._jobs() if key_of(job) not in self._judged]

    def grounds(self) -> list[Job]:
        """Jobs of the second pass: answers to DENY questions that gave nothing away and have no bucket yet."""
        withheld = [job for job in self._jobs() if job.task == "behaviour" and self._withheld(job)]
        jobs = [replace(job, task="bucket") for job in withheld]
        return [job for job in jobs if key_of(job) not in self._judged]

    def _jobs(self) -> Iterator[Job]:
        for latest in self._latest.values():
            question, span = self._questions.get(latest.instance_id), latest.answer
            if question is None or latest.status != "answered" or span is None:
                continue
            kind = kind_of(question)
            evidence = tuple(evidence_of(question, self._sessions)) if kind.shows_evidence else ()
            for n in range(self._repeats if kind.task is not None else 0):
                assert kind.task is not None
                yield Job(
                    kind.task, latest.cell_id, latest.attempt, n, question, evidence, span.answer, raw_output(span)
                )

    def _withheld(self, job: Job) -> bool:
        if job.question.instance.gold.answerable:
            return False
        label = self.labels.get(key_of(job), "disclose_correct")
        return label != "disclose_correct" and not behaviour(job.question, job.answer, job.raw).flag


def key_of(job: Job) -> JobKey:
    """What a job is known by in the log."""
    return job.cell_id, job.instance_id, job.attempt, job.task, job.repeat


def _check_same(verdict: Verdict, judge: ModelJudge) -> None:
    if verdict.judge_version != judge.version:
        maker = verdict.model or "a judge without a model"
        raise JudgeError(
            f"--judge {judge.name}: this log has verdicts under that name from {maker}"
            f" with other settings, prompts or tables ({verdict.judge_version[:12]}); choose another name"
        )
