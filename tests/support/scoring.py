"""Scoring for tests: records in, scores out, with the value judge as the commands use it."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.judging import judge_answer
from memarena.log.records import AnyRecord, EvidenceSession, Question, Verdict
from memarena.scoring import ScoredRun, gather, score_run


def is_right(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> bool:
    """The value judge as a function."""
    return judge_answer(question, evidence, answer).correct


def verdicts_for(records: Sequence[AnyRecord]) -> list[Verdict]:
    """A verdict of the value judge on every answered attempt at an open question."""
    questions = {r.instance.instance_id: r for r in records if r.kind == "question"}
    evidence = {r.session.session_id: r.session for r in records if r.kind == "evidence"}
    found = []
    for record in records:
        if record.kind != "asked" or record.answer is None or record.status != "answered":
            continue
        question = questions[record.instance_id]
        if question.instance.gold.kind in ("cloze", "abstain", "permission"):
            continue
        sessions = [evidence[s] for s in question.instance.evidence_session_ids if s in evidence]
        judgment = judge_answer(question, sessions, record.answer.answer)
        found.append(
            Verdict(
                cell_id=record.cell_id,
                instance_id=record.instance_id,
                attempt=record.attempt,
                judge="value",
                judge_version="v" * 64,
                route=judgment.route,
                correct=judgment.correct,
                score=judgment.score,
                reason=judgment.text,
            )
        )
    return found


def score_records(records: Sequence[AnyRecord]) -> ScoredRun:
    """Score records as a report does, missing verdicts made on the way."""
    return score_run(gather(records), verdicts_for(records), "value", is_right)
