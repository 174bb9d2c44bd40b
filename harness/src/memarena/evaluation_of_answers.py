"""Scores answers from anywhere: a file of rows ``{instance_id, answer}`` beside the data set that was asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_answering.parsing import parse_answer
from memarena_dataset.gold import AbstainGold, ClozeGold, PermissionGold, RubricGold
from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Instance

from memarena.execution.planning.questions import evidence_texts, plan_questions
from memarena.judging import JudgeError, judge_answer
from memarena.judging.kinds.abstain import judge_abstention
from memarena.log.records import EvidenceSession, Outcome, Question
from memarena.scoring.metrics import cell_metrics
from memarena.scoring.outcomes import Rules
from memarena.scoring.questions import NOT_JUDGED, question_base
from memarena.scoring.results import QuestionScore, Score

DIMENSIONS = ("D1", "D2", "D3", "D4", "D5", "D6", "X1", "D5*", "P", "U", "J")
"""Figures that are given of a file of answers."""


@dataclass(frozen=True)
class AnswerRow:
    """One usable row of the file."""

    line: int
    instance_id: str
    answer: str


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be judged, and why."""

    line: int
    fault: str


@dataclass(frozen=True)
class AnswerVerdict:
    """The word on one row."""

    instance_id: str
    family: str
    dimension: str
    correct: bool
    reason: str
    """A code."""
    why: str
    """The reason in one line."""
    claim: str
    """What of the answer decided: the value, clause or part; empty where nothing did."""
    disclosed: bool | None
    """D6: whether the fact came out; None elsewhere."""
    label: str | None
    """D6: the behaviour, by rules; None elsewhere."""

    def as_dict(self) -> dict[str, str | bool | None]:
        """As it is written; what is for D6 only stands in D6 rows alone."""
        row: dict[str, str | bool | None] = {
            "instance_id": self.instance_id,
            "family": self.family,
            "dimension": self.dimension,
            "correct": self.correct,
            "reason": self.reason,
            "claim": self.claim,
            "why": self.why,
        }
        return row if self.disclosed is None else {**row, "disclosed": self.disclosed, "label": self.label}


@dataclass(frozen=True)
class EvaluatedAnswers:
    """Verdicts in the order of the file, and the figures over them."""

    verdicts: tuple[AnswerVerdict, ...]
    scores: Mapping[str, Score]
    asked: int
    """Questions that the data set holds."""


def read_answers(path: Path, known: Iterable[Instance]) -> tuple[list[AnswerRow], list[BadRow]]:
    """Usable and unusable rows of a file of JSON lines; blank lines are passed over.

    Raises JudgeError if the file cannot be read.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise JudgeError(f"{path}: cannot be read: {error.strerror}") from error
    by_id = {instance.instance_id: instance for instance in known}
    rows: list[AnswerRow] = []
    bad: list[BadRow] = []
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _row(number, line, by_id)
        if isinstance(row, AnswerRow) and row.instance_id in first:
            at = first[row.instance_id]
            row = BadRow(number, f"instance_id: {row.instance_id!r} stands in line {at} already; expected it once")
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            first[row.instance_id] = number
            rows.append(row)
    return rows, bad


def evaluate_answers(dataset: Dataset, rows: Sequence[AnswerRow]) -> EvaluatedAnswers:
    """Judge every row without a model, and score the dimensions over the rows that are there."""
    by_id = {instance.instance_id: instance for instance in dataset.instances}
    planned = plan_questions(dataset, [by_id[row.instance_id] for row in rows], "interleaved", seed=0)
    questions = {question.instance.instance_id: question for question in planned}
    evidence = {text.session.session_id: text.session for text in evidence_texts(dataset, planned)}
    rules = Rules()
    judged = [_judge(questions[row.instance_id], evidence, rules, row.answer) for row in rows]
    figures = cell_metrics([score for _, score in judged], {})
    scores = {name: figures[name] for name in DIMENSIONS if figures[name].value is not None}
    return EvaluatedAnswers(tuple(verdict for verdict, _ in judged), scores, len(by_id))


def _row(number: int, line: bytes, by_id: Mapping[str, Instance]) -> AnswerRow | BadRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return BadRow(number, "expected a JSON object {instance_id, answer}, found no JSON")
    if not isinstance(row, dict):
        return BadRow(number, f"expected a JSON object {{instance_id, answer}}, found {type(row).__name__}")
    fault = next((found for name in ("instance_id", "answer") if (found := _fault(row, name))), "")
    if not fault and row["instance_id"] not in by_id:
        fault = f"instance_id: {row['instance_id']!r}: the data set has no such question"
    if not fault and isinstance(by_id[row["instance_id"]].gold, RubricGold):
        fault = f"instance_id: {row['instance_id']!r}: {NOT_JUDGED}"
    return BadRow(number, fault) if fault else AnswerRow(number, row["instance_id"], row["answer"])


def _fault(row: Mapping[str, object], name: str) -> str:
    """What is wrong with a field, empty if nothing is."""
    if name not in row:
        return f"{name}: missing"
    text = row[name]
    if not isinstance(text, str):
        return f"{name}: expected a text, found {json.dumps(text)[:60]}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{name}: holds half of a surrogate pair, which is no text"
    return ""


def _judge(
    question: Question, evidence: Mapping[str, EvidenceSession], rules: Rules, raw: str
) -> tuple[AnswerVerdict, QuestionScore]:
    gold = question.instance.gold
    answer = parse_answer(raw).answer
    by_rules = rules.judge_text(question, answer, raw if isinstance(gold, PermissionGold) else "")
    if by_rules.settled is not None:
        correct, why, route = by_rules.settled.outcome is Outcome.CORRECT, by_rules.settled.why, by_rules.settled.route
        code, claim = _code(question, answer, correct=correct), ""
    else:
        sessions = [evidence[s] for s in question.instance.evidence_session_ids if s in evidence]
        judgment = judge_answer(question, sessions, answer)
        correct, why, route = judgment.correct, judgment.text, judgment.route
        code, claim = judgment.reason.code.value, judgment.reason.said or judgment.reason.value
    found = by_rules.disclosure
    if found is not None:
        code, claim = ("discloses" if found.disclosed else "keeps"), found.flag
    elif isinstance(gold, AbstainGold):
        claim = judge_abstention(gold, question.question_text, answer, (question.ego_name, question.asker_name)).claim
    verdict = AnswerVerdict(
        instance_id=question.instance.instance_id,
        family=question.instance.family.value,
        dimension=question.instance.dimension.value,
        correct=correct,
        reason=code,
        why=why,
        claim=claim,
        disclosed=None if found is None else found.disclosed,
        label=None if found is None else found.label,
    )
    score = question_base(question).model_copy(
        update={
            "outcome": Outcome.CORRECT if correct else Outcome.WRONG,
            "attempts": 1,
            "route": route,
            "why": why,
            "disclosure": found,
        }
    )
    return verdict, score


def _code(question: Question, answer: str, *, correct: bool) -> str:
    gold = question.instance.gold
    if isinstance(gold, ClozeGold):
        return "right_option" if correct else "not_the_right_option"
    if isinstance(gold, AbstainGold):
        names = (question.ego_name, question.asker_name)
        return judge_abstention(gold, question.question_text, answer, names).reason.value
    return ""


def as_lines(evaluated: EvaluatedAnswers) -> Iterator[str]:
    """One JSON object a row, then one with the scores."""
    for verdict in evaluated.verdicts:
        yield json.dumps(verdict.as_dict(), ensure_ascii=False)
    yield json.dumps(scores_of(evaluated), ensure_ascii=False)


def scores_of(evaluated: EvaluatedAnswers) -> dict[str, object]:
    """Figures by dimension with the number of rows behind each, and how much of the data set was answered."""
    counts: dict[str, int] = {}
    for verdict in evaluated.verdicts:
        counts[verdict.dimension] = counts.get(verdict.dimension, 0) + 1
    return {
        "scores": {name: score.value for name, score in evaluated.scores.items()},
        "rows": dict(sorted(counts.items())),
        "answered": len(evaluated.verdicts),
        "questions": evaluated.asked,
    }
