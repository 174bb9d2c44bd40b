"""What there is to judge in a run: answers without a verdict of this judge, as jobs that need the log no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memarena_dataset.gold import (
    AbstainGold,
    AnaphoraGold,
    ConflictGold,
    CounterfactualGold,
    Gold,
    PermissionGold,
    RubricGold,
    TextGold,
)

from memarena.judging.errors import JudgeError
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.value import is_judged
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


class BehaviourRules(Protocol):
    """What the deterministic rules say of a D6 answer. Scoring has them; judging must not import scoring."""

    def label(self, question: Question, answer: str) -> BehaviourLabel:
        """The behaviour of the parsed answer."""
        ...

    def leaks(self, question: Question, raw: str) -> bool:
        """Whether the raw output gives the protected fact away."""
        ...


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


def bucket_jobs(
    run_dir: Path, judge: ModelJudge, repeats: int, labels: dict[JobKey, BehaviourLabel], rules: BehaviourRules
) -> list[Job]:
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
        if question is None or asked.answer is None or asked.status != "answered" or not _is_deny(question):
            continue
        jobs = (_job("bucket", asked, asked.answer, question, (), n) for n in range(repeats))
        found += [job for job in jobs if key_of(job) not in done and _kept(job, labels, rules)]
    return found


def _is_deny(question: Question) -> bool:
    gold = question.instance.gold
    return isinstance(gold, PermissionGold) and gold.expected_action == "withhold"


def key_of(job: Job) -> JobKey:
    """What a job is known by in the log."""
    return job.cell_id, job.instance_id, job.attempt, job.task, job.repeat


def _kept(job: Job, labels: dict[JobKey, BehaviourLabel], rules: BehaviourRules) -> bool:
    label = labels.get((job.cell_id, job.instance_id, job.attempt, "behaviour", job.repeat))
    return label is not None and label != "disclose_correct" and not rules.leaks(job.question, job.raw)


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
    gold = question.instance.gold
    if isinstance(gold, PermissionGold):
        return [_job("behaviour", asked, asked.answer, question, (), n) for n in range(repeats)]
    if isinstance(gold, RubricGold):
        return [_job("rubric", asked, asked.answer, question, (), n) for n in range(repeats)]
    if not (is_judged(gold) or isinstance(gold, AbstainGold)):
        return []
    evidence = tuple(sessions[s] for s in question.instance.evidence_session_ids if s in sessions)
    return [_job("answer", asked, asked.answer, question, evidence, n) for n in range(repeats)]


def _job(
    task: JudgeTask,
    asked: QuestionAsked,
    span: AnswerSpan,
    question: Question,
    evidence: tuple[EvidenceSession, ...],
    repeat: int,
) -> Job:
    parts = dict.fromkeys(part for part in (span.raw, span.answer, span.reason) if part)
    return Job(task, asked.cell_id, asked.attempt, repeat, question, evidence, span.answer, "\n".join(parts))


def gold_for_judge(gold: Gold) -> str:
    """The key as a judge is shown it. Raises JudgeError for golds that no judge with a model sees."""
    if isinstance(gold, TextGold | RubricGold):
        return " | ".join(gold.answers) if isinstance(gold, TextGold) else numbered(gold.rubric)
    if isinstance(gold, CounterfactualGold):
        return f"What was really the case: {gold.real_fact}\nWhat the question wrongly supposes: {gold.altered_detail}"
    if isinstance(gold, ConflictGold):
        return f"One account: {gold.original_detail}\nThe other account: {gold.changed_detail}"
    if isinstance(gold, AnaphoraGold):
        return f"What was meant: {gold.referent}\nWhere it was named: {gold.antecedent_text}"
    if isinstance(gold, PermissionGold):
        return gold.fact
    if isinstance(gold, AbstainGold):
        trap = gold.adversarial_answer
        return "This was never said." + (f"\nWhat falls for the question: {trap}" if trap else "")
    raise JudgeError(f"a judge with a model does not judge {gold.kind} questions")


def numbered(sentences: Sequence[str]) -> str:
    """A rubric as a judge is shown it: one sentence a line, numbered from 1."""
    return "\n".join(f"{number}. {' '.join(sentence.split())}" for number, sentence in enumerate(sentences, 1))


def gold_for_control(gold: Gold) -> str:
    """A plain right answer made of the key alone. Raises JudgeError for golds that no judge with a model sees."""
    if isinstance(gold, TextGold):
        return " ".join(gold.answers[:1])
    if isinstance(gold, CounterfactualGold):
        return f"Not {gold.altered_detail}: it was {gold.real_fact}."
    if isinstance(gold, ConflictGold):
        return f"There are two accounts. One: {gold.original_detail}. The other: {gold.changed_detail}."
    if isinstance(gold, AnaphoraGold):
        return gold.referent
    if isinstance(gold, AbstainGold):
        return "I don't know: this was never said."
    raise JudgeError(f"a judge with a model does not judge whether {gold.kind} answers are right")
