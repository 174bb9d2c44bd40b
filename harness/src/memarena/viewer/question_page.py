"""Reads a question and its answers in one or several cells from the log, for the page of one question.

It reads the log and not the cache, as prompts and items are too large for the cache.
"""

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
"""Characters below which a passage is not highlighted in a prompt, since it may occur there by chance."""


@dataclass(frozen=True)
class Source:
    """A question with its evidence sessions by id."""

    question: Question
    evidence: dict[str, EvidenceSession]


def read_source(folder: Path, instance_id: str) -> Source | None:
    """Read a question and its evidence; None if the log has no such question. Raises LogError."""
    with LogReader(folder) as log:
        question = next((r for r in log.records("question", instance_id=instance_id) if r.kind == "question"), None)
        if question is None:
            return None
        evidence_ids = set(question.instance.evidence_session_ids)
        evidence: dict[str, EvidenceSession] = {}
        if evidence_ids:
            for record in log.records("evidence"):
                if record.kind == "evidence" and record.session.session_id in evidence_ids:
                    evidence[record.session.session_id] = record.session
                    if len(evidence) == len(evidence_ids):
                        break
    return Source(question, evidence)


def read_view(
    folder: Path, source: Source, cells: Mapping[str, Cell], scores: Mapping[str, QuestionScore], judge: str
) -> QuestionView:
    """Read the answers to a question in the cells of ``scores``, in their order. Raises LogError.

    ``cells`` and ``scores`` are by id of the cell; ``judge`` is the name of the judge whose verdicts are shown.
    """
    question, evidence = source.question, source.evidence
    instance_id = question.instance.instance_id
    records = answer_records(folder, [(cell, instance_id) for cell in scores])
    answers = []
    for cell, score in scores.items():
        attempts = records[cell, instance_id]
        judged = attempts.judged_with_rules(question, evidence, judge)
        answers.append(answer_view(question, evidence, cells[cell], score, attempts.asked, attempts.calls, judged))
    return question_view(question, evidence, answers)


def whole_text(folder: Path, source: Source, cell: Cell, part: str) -> str | None:
    """Return the full text of which a page shows the start, from the latest attempt. Raises LogError.

    ``part`` is a key of ``AttemptView.texts``; None if there is no attempt or no such text.
    """
    key = cell.cell_id, source.question.instance.instance_id
    attempts = answer_records(folder, [key])[key]
    if not attempts.asked:
        return None
    count = len(attempts.asked)
    view = attempt_view(source.question, cell, attempts.asked[-1], attempts.calls, number=count, latest=True)
    return view.texts().get(part)


def passages_of(view: QuestionView) -> list[str]:
    """Return the texts of evidence turns, to highlight them in prompts; of all turns if none is marked as evidence."""
    turns = [turn for session in view.sessions for turn in session.turns]
    evidence = [turn for turn in turns if turn.marked] or turns
    return [turn.text for turn in evidence if len(turn.text.strip()) >= LEAST_MARKED]
