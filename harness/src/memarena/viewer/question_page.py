"""One question as its page shows it, in one cell or several side by side, read from the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memarena.evaluation import answer_records
from memarena.log.records import Cell, EvidenceSession, Question
from memarena.log.store import LogReader
from memarena.report.question_view.making import answer_view, attempt_view, question_view
from memarena.report.question_view.records import QuestionView
from memarena.scoring.results import QuestionScore

LEAST_MARKED = 12
"""Passages shorter than this are not marked in a prompt: they are there by chance."""


@dataclass(frozen=True)
class Source:
    """A question with its evidence, from the log."""

    question: Question
    evidence: dict[str, EvidenceSession]


def read_source(folder: Path, instance_id: str) -> Source | None:
    """The question and its evidence; None where the log has no such question. Raises LogError."""
    with LogReader(folder) as log:
        question = next((r for r in log.records("question", instance_id=instance_id) if r.kind == "question"), None)
        if question is None:
            return None
        wanted = set(question.instance.evidence_session_ids)
        evidence: dict[str, EvidenceSession] = {}
        if wanted:
            for record in log.records("evidence"):
                if record.kind == "evidence" and record.session.session_id in wanted:
                    evidence[record.session.session_id] = record.session
                    if len(evidence) == len(wanted):
                        break
    return Source(question, evidence)


def read_view(
    folder: Path, source: Source, cells: Mapping[str, Cell], scores: Mapping[str, QuestionScore], judge: str
) -> QuestionView:
    """The question in each of the cells that have a score, in their order. Raises LogError."""
    question, evidence = source.question, source.evidence
    instance_id = question.instance.instance_id
    records = answer_records(folder, [(cell, instance_id) for cell in scores])
    answers = []
    for cell, score in scores.items():
        kept = records[cell, instance_id]
        judged = kept.judged_with_rules(question, evidence, judge)
        answers.append(answer_view(question, evidence, cells[cell], score, kept.asked, kept.calls, judged))
    return question_view(question, evidence, answers)


def whole_text(folder: Path, source: Source, cell: Cell, part: str) -> str | None:
    """A text that a page shows the start of, whole; None where there is none of this name. Raises LogError."""
    key = cell.cell_id, source.question.instance.instance_id
    kept = answer_records(folder, [key])[key]
    if not kept.asked:
        return None
    count = len(kept.asked)
    view = attempt_view(source.question, cell, kept.asked[-1], kept.calls, number=count, latest=True)
    return view.texts().get(part)


def passages_of(view: QuestionView) -> list[str]:
    """Evidence as it may stand in a prompt."""
    turns = [turn for session in view.sessions for turn in session.turns]
    chosen = [turn for turn in turns if turn.marked] or turns
    return [turn.text for turn in chosen if len(turn.text.strip()) >= LEAST_MARKED]
