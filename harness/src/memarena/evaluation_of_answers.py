"""Scores answers from anywhere: a file of rows ``{instance_id, answer}`` and the data set that was asked.

For answers of systems that the harness cannot run: they are judged as in a run, but nothing is known of time or items.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_answering.parsing import parse_answer
from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Instance

from memarena.execution.planning.questions import evidence_texts, plan_questions
from memarena.judging import JUDGE_NAME, JudgeError, Judgment, judge, value_judge_version
from memarena.judging.judgments import evidence_of
from memarena.judging.kinds import KINDS, kind_of
from memarena.judging.llm import AskedJudge, JudgeWords, UnloggedAnswer, Watcher, ask_about
from memarena.log.records import Question
from memarena.scoring.figures import JudgeError as TextJudgeError
from memarena.scoring.figures import Score
from memarena.scoring.judge_error import text_judge_error
from memarena.scoring.metrics import cell_metrics
from memarena.scoring.questions import NOT_JUDGED, judged, question_base
from memarena.scoring.results import QuestionScore

DIMENSIONS = ("D1", "D2", "D3", "D4", "D5", "D6", "X1", "D5*", "P", "U", "J")
"""Figures that are computed for a file of answers."""


@dataclass(frozen=True)
class AnswerRow:
    """A usable row of the file."""

    line: int
    instance_id: str
    answer: str


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be judged, and why."""

    line: int
    fault: str


@dataclass(frozen=True)
class JudgedRow:
    """A row with its question and judgment."""

    question: Question
    judgment: Judgment

    def as_dict(self) -> dict[str, str | bool | None]:
        """Return the row as it is written; only D6 rows (permission) have ``disclosed`` and ``label``."""
        instance, judgment = self.question.instance, self.judgment
        row: dict[str, str | bool | None] = {
            "instance_id": instance.instance_id,
            "family": instance.family.value,
            "dimension": instance.dimension.value,
            "correct": judgment.correct,
            "reason": judgment.code.value,
            "claim": judgment.claim,
            "why": judgment.why,
        }
        disclosure = judgment.disclosure
        return row if disclosure is None else {**row, "disclosed": disclosure.disclosed, "label": disclosure.label}


@dataclass(frozen=True)
class EvaluatedAnswers:
    """Verdicts in the order of the file, and the figures over them."""

    verdicts: tuple[JudgedRow, ...]
    scores: Mapping[str, Score]
    asked: int
    """Number of questions of the data set."""
    judge: str
    judge_version: str
    error: TextJudgeError | None
    """Error of the share right over golds in text; None if the rules judged no such gold."""
    unjudged: tuple[BadRow, ...] = ()
    """Rows without a verdict of the judge with a model, and why: they count in no figure."""
    words: JudgeWords | None = None
    """Calls and cost of a judge with a model; None without such a judge."""


def read_answers(
    path: Path, known: Iterable[Instance], *, with_model: bool = False
) -> tuple[list[AnswerRow], list[BadRow]]:
    """Return the usable and the unusable rows of a file of JSON lines; blank lines are skipped.

    ``with_model``: whether a model judges them; only then golds with a rubric are usable. Raises JudgeError if the
    file cannot be read.
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
        row = _row(number, line, by_id, with_model=with_model)
        if isinstance(row, AnswerRow) and row.instance_id in first:
            at = first[row.instance_id]
            row = BadRow(number, f"instance_id: {row.instance_id!r} is in line {at} already; expected it once")
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            first[row.instance_id] = number
            rows.append(row)
    return rows, bad


def evaluate_answers(
    dataset: Dataset, rows: Sequence[AnswerRow], asked: AskedJudge | None = None, watcher: Watcher | None = None
) -> EvaluatedAnswers:
    """Judge every row, and score the dimensions over the rows that are judged.

    ``asked``: a judge with a model; ``watcher``: gets its progress. As in a run it judges open answers and the
    behaviour in D6; the rules decide the others. Raises JudgeError if its server can never answer.
    """
    by_id = {instance.instance_id: instance for instance in dataset.instances}
    planned = plan_questions(dataset, [by_id[row.instance_id] for row in rows], "interleaved", seed=0)
    questions = {question.instance.instance_id: question for question in planned}
    evidence = {text.session.session_id: text.session for text in evidence_texts(dataset, planned)}
    answers = [
        UnloggedAnswer(
            question := questions[row.instance_id],
            tuple(evidence_of(question, evidence)),
            parse_answer(row.answer).answer,
            row.answer,
        )
        for row in rows
    ]
    of_model = [n for n, a in enumerate(answers) if asked is not None and kind_of(a.question).decided_by != "rules"]
    words = None
    judgments: dict[int, Judgment | None] = {}
    if asked is not None and watcher is not None:
        words = ask_about([answers[n] for n in of_model], asked, watcher)
        judgments = dict(zip(of_model, words.judgments, strict=True))
    judgments |= {
        n: judge(a.question, a.evidence, a.answer, a.raw) for n, a in enumerate(answers) if n not in judgments
    }
    judged_rows = [JudgedRow(a.question, j) for n, a in enumerate(answers) if (j := judgments[n]) is not None]
    scored = [_score(row) for row in judged_rows]
    figures = cell_metrics(scored, {})
    return EvaluatedAnswers(
        verdicts=tuple(judged_rows),
        scores={name: figures[name] for name in DIMENSIONS if figures[name].value is not None},
        asked=len(by_id),
        judge=JUDGE_NAME if asked is None else asked.judge.name,
        judge_version=value_judge_version() if asked is None else asked.judge.version,
        error=text_judge_error(scored, None) if asked is None else None,
        unjudged=tuple(_unjudged(rows, of_model, words)) if words is not None else (),
        words=words,
    )


def _unjudged(rows: Sequence[AnswerRow], of_model: Sequence[int], words: JudgeWords) -> Iterator[BadRow]:
    for n, judgment in enumerate(words.judgments):
        if judgment is None:
            failure = words.failures.get(n)
            why = f"{failure.cause}: {failure.message}" if failure else f"not asked: {words.stopped}"
            yield BadRow(rows[of_model[n]].line, f"the judge gave no verdict: {why}")


def _score(row: JudgedRow) -> QuestionScore:
    return question_base(row.question).model_copy(update={"attempts": 1, **judged(row.judgment)})


def _row(number: int, line: bytes, by_id: Mapping[str, Instance], *, with_model: bool) -> AnswerRow | BadRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return BadRow(number, "expected a JSON object {instance_id, answer}, found no JSON")
    if not isinstance(row, dict):
        return BadRow(number, f"expected a JSON object {{instance_id, answer}}, found {type(row).__name__}")
    fault = next((reason for name in ("instance_id", "answer") if (reason := _fault(row, name))), "")
    if not fault and row["instance_id"] not in by_id:
        fault = f"instance_id: {row['instance_id']!r}: the data set has no such question"
    if not fault and not with_model and not KINDS[by_id[row["instance_id"]].gold.kind].has_rules:
        fault = f"instance_id: {row['instance_id']!r}: {NOT_JUDGED}"
    return BadRow(number, fault) if fault else AnswerRow(number, row["instance_id"], row["answer"])


def _fault(row: Mapping[str, object], name: str) -> str:
    """Return what is wrong with a field; empty if nothing is."""
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


def as_lines(evaluated: EvaluatedAnswers) -> Iterator[str]:
    """Yield a JSON object for each verdict, then one with the scores."""
    for verdict in evaluated.verdicts:
        yield json.dumps(verdict.as_dict(), ensure_ascii=False)
    yield json.dumps(scores_of(evaluated), ensure_ascii=False)


def scores_of(evaluated: EvaluatedAnswers) -> dict[str, object]:
    """Return the figures by dimension, the number of rows of each, and how much of the data set was answered."""
    counts: dict[str, int] = {}
    for verdict in evaluated.verdicts:
        dimension = verdict.question.instance.dimension.value
        counts[dimension] = counts.get(dimension, 0) + 1
    return {
        "scores": {name: score.value for name, score in evaluated.scores.items()},
        "rows": dict(sorted(counts.items())),
        "answered": len(evaluated.verdicts),
        "questions": evaluated.asked,
        "judge": evaluated.judge,
        "judge_version": evaluated.judge_version,
        "unjudged": len(evaluated.unjudged),
        "judge_error": None if evaluated.error is None else evaluated.error.model_dump(mode="json"),
    }
