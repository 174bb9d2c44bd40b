"""What there is to judge in a run: answers without a verdict of this judge, as jobs that need the log no more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memarena.judging.errors import JudgeError
from memarena.judging.judgments import evidence_of, raw_output
from memarena.judging.kinds import kind_of
from memarena.judging.kinds.permission import behaviour
from memarena.judging.llm.identity import ModelJudge
from memarena.log.records import (
    AnswerSpan,
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


def open_jobs(run_dir: Path, judge: ModelJudge, repeats: int) -> tuple[list[Job], dict[JobKey, BehaviourLabel]]:
    """Jobs of the first pass (answers and behaviours) that have no verdict, and the labels of D6 that have one.

    Only the latest attempt at a question is judged, and only if it was answered. Raises JudgeError if another judge
    (model, settings, prompts) has used the same name in this log.
    """
    questions: dict[str, Question] = {}
    sessions: dict[str, EvidenceSession] = {}
    latest: dict[tuple[str, str], QuestionAsked] = {}
    done: dict[JobKey, BehaviourLabel | None] = {}
    for record in read_records(run_dir, "question", "evidence", "asked", "verdict"):
        if record.kind == "question":
            questions[record.instance.instance_id] = record
        elif record.kind == "evidence":
            sessions[record.session.session_id] = record.session
        elif record.kind == "asked":
            latest[record.cell_id, record.instance_id] = record
        elif record.kind == "verdict" and record.judge == judge.name:
            _check_same(record, judge)
            done[record.cell_id, record.instance_id, record.attempt, record.task, record.repeat] = record.label
    jobs = [
        job
        for asked in latest.values()
        for job in _jobs_of(asked, questions.get(asked.instance_id), sessions, repeats)
        if key_of(job) not in done
    ]
    return jobs, {key: label for key, label in done.items() if label is not None}


def bucket_jobs(run_dir: Path, judge: ModelJudge, repeats: int, labels: dict[JobKey, BehaviourLabel]) -> list[Job]:
    """Jobs of the second pass: answers to DENY questions that gave nothing away and have no bucket yet."""
    questions: dict[str, Question] = {}
    latest: dict[tuple[str, str], QuestionAsked] = {}
    done: set[JobKey] = set()
    for record in read_records(run_dir, "question", "asked", "bucket"):
        if record.kind == "question":
            questions[record.instance.instance_id] = record
        elif record.kind == "asked":
            latest[record.cell_id, record.instance_id] = record
        elif record.kind == "bucket" and (record.judge, record.judge_version) == (judge.name, judge.version):
            done.add((record.cell_id, record.instance_id, record.attempt, "bucket", record.repeat))
    found = []
    for asked in latest.values():
        question = questions.get(asked.instance_id)
        if question is None or asked.answer is None or asked.status != "answered" or not _withholds(question):
            continue
        jobs = (_job("bucket", asked, asked.answer, question, (), n) for n in range(repeats))
        found += [job for job in jobs if key_of(job) not in done and _kept(job, labels)]
    return found


def _withholds(question: Question) -> bool:
    return kind_of(question).task == "behaviour" and not question.instance.gold.answerable


def key_of(job: Job) -> JobKey:
    """What a job is known by in the log."""
    return job.cell_id, job.instance_id, job.attempt, job.task, job.repeat


def _kept(job: Job, labels: dict[JobKey, BehaviourLabel]) -> bool:
    label = labels.get((job.cell_id, job.instance_id, job.attempt, "behaviour", job.repeat))
    return label is not None and label != "disclose_correct" and not behaviour(job.question, job.answer, job.raw).flag


def _check_same(verdict: Verdict, judge: ModelJudge) -> None:
    if verdict.judge_version != judge.version:
        maker = verdict.model or "a judge without a model"
        raise JudgeError(
            f"--judge {judge.name}: this log has verdicts under that name from {maker}"
            f" with other settings, prompts or tables ({verdict.judge_version[:12]}); choose another name"
        )


def _jobs_of(
    asked: QuestionAsked, question: Question | None, sessions: dict[str, EvidenceSession], repeats: int
) -> list[Job]:
    if question is None or asked.status != "answered" or asked.answer is None:
        return []
    kind = kind_of(question)
    if kind.task is None:
        return []
    evidence = tuple(evidence_of(question, sessions)) if kind.shows_evidence else ()
    return [_job(kind.task, asked, asked.answer, question, evidence, n) for n in range(repeats)]


def _job(
    task: JudgeTask,
    asked: QuestionAsked,
    span: AnswerSpan,
    question: Question,
    evidence: tuple[EvidenceSession, ...],
    repeat: int,
) -> Job:
    return Job(task, asked.cell_id, asked.attempt, repeat, question, evidence, span.answer, raw_output(span))
