"""One line per question that did not end right."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.log.records import Outcome
from memarena.report.layout import Document, Section
from memarena.scoring.facts import RunFacts
from memarena.scoring.results import QuestionScore

ANSWER_WIDTH = 60


def failures_document(
    facts: RunFacts, questions: Sequence[QuestionScore], cell: str | None, family: str | None
) -> Document:
    """Wrong and failed questions, by cell and id, of one cell or family where given."""
    chosen = [
        q
        for q in questions
        if q.outcome not in (None, Outcome.CORRECT) and cell in (None, q.cell_id) and family in (None, q.family)
    ]
    asked = [q for q in questions if q.outcome is not None and cell in (None, q.cell_id) and family in (None, q.family)]
    table = [_columns(facts, q) for q in chosen]
    widths = [max(len(row[i]) for row in table) for i in range(4)] if table else []
    lines = tuple(_line(row, widths) for row in table)
    summary = f"{len(lines):,} of {len(asked):,} questions asked did not end right"
    return Document("Failures", (Section(summary, lines, one_line_each=True),))


def _columns(facts: RunFacts, question: QuestionScore) -> tuple[str, ...]:
    outcome = question.outcome.value.replace("_", " ") if question.outcome else ""
    stage = f"{question.stage.replace('_', ' ')}: " if question.stage else ""
    answer = _answer(facts, question)
    why = " ".join(f"{stage}{question.why}".split())
    return outcome, question.cell_id, question.instance_id, question.family, why, f"“{answer}”" if answer else ""


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    aligned = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
    return "  ".join([*aligned, *row[len(widths) :]]).rstrip()


def _answer(facts: RunFacts, question: QuestionScore) -> str:
    attempts = facts.attempts.get((question.cell_id, question.instance_id), [])
    answer = attempts[-1].record.answer if attempts else None
    text = " ".join(answer.answer.split()) if answer else ""
    return text if len(text) <= ANSWER_WIDTH else text[: ANSWER_WIDTH - 1] + "…"
