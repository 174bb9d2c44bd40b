"""Formats the comparison of two rows question by question, as a document or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from statistics import fmean

from memarena_dataset.printing import csv_cell

from memarena.report.figures import NA
from memarena.report.layout import Cell, Column, Document, Fact, Section, section
from memarena.scoring.question_changes import (
    FIGURES,
    AnswersOf,
    FamilyChange,
    QuestionChange,
    QuestionsCompared,
)

ANSWER_WIDTH = 60
"""Characters of an answer, or of a setting, that a line shows, at most."""
_CSV = (
    "a", "b", "instance_id", "family", "dimension", "ego", "change", "a_outcomes", "b_outcomes", "question",
    "a_answers", "b_answers",
)  # fmt: skip
_MEANINGS = {
    "answerable": "share whose prompt holds turns that suffice for the gold, percent",
    "right": "share right, percent: A → B, and B - A",
    "recall@10": "evidence sessions among the first 10 items, percent",
    "search_ms": "Search+floor, median, ms",
    "ttft_ms": "TTFT at the gateway, median, ms",
    "tokens": "tokens that the reader read and wrote per answer, mean",
}


def questions_document(comparison: QuestionsCompared, *, table: bool = False) -> Document:
    """Return the settings that differ, figures by family, and the questions.

    Each question is a line with truncated answers, or with ``table`` a row with full ones.
    """
    counts = ", ".join(f"{count:,} {change}" for change, count in comparison.counts.items())
    head = Section(
        "Question by question",
        (
            Fact("A", f"{comparison.a.label} of run {comparison.a.run_id} (seeds {', '.join(comparison.a.seeds)})"),
            Fact("B", f"{comparison.b.label} of run {comparison.b.run_id} (seeds {', '.join(comparison.b.seeds)})"),
            Fact("from A to B", counts, 11),
        ),
        notes=comparison.cautions,
    )
    if table and comparison.questions:
        questions = _table(comparison.questions)
    else:
        questions = Section("Questions", _lines(comparison.questions) or ("none",), one_line_each=True)
    return Document("MemArena comparison", (head, _settings(comparison), _families(comparison.families), questions))


def _settings(comparison: QuestionsCompared) -> Section:
    columns = [Column("setting", align="left"), Column("A", align="left"), Column("B", align="left")]
    rows = [[Cell(setting.key), Cell(_cut(setting.a)), Cell(_cut(setting.b))] for setting in comparison.settings]
    return section("Settings that differ", columns, rows) if rows else Section("Settings that differ", ("none",))


def _families(families: Sequence[FamilyChange]) -> Section:
    columns = [
        Column("family", align="left"),
        Column("n", "questions with an outcome under every seed of both"),
        *(Column(name, _MEANINGS[name]) for name in FIGURES),
    ]
    rows = [
        [Cell(family.family), Cell(f"{family.questions:,}"), *(_figure(family, name) for name in FIGURES)]
        for family in families
    ]
    return section("Figures by family", columns, rows) if rows else Section("Figures by family", ("none",))


def _figure(family: FamilyChange, name: str) -> Cell:
    change = family.figures[name]
    if change.a is None or change.b is None or change.change is None:
        return NA
    scale = 100 if FIGURES[name].share else 1
    a, b, by = scale * change.a, scale * change.b, scale * change.change
    return Cell(f"{a:,.1f} → {b:,.1f} ({by:+,.1f})", questions=family.questions if FIGURES[name].share else None)


def _table(questions: Sequence[QuestionChange]) -> Section:
    titles = ("change", "family", "question", "A", "answer of A", "B", "answer of B", "id")
    rows = [
        [q.change, q.family, q.question, _outcome(q.a), _answers(q.a), _outcome(q.b), _answers(q.b), q.instance_id]
        for q in questions
    ]
    columns = [Column(title, align="left") for title in titles]
    return section("Questions", columns, [[Cell(text) for text in row] for row in rows])


def _answers(side: AnswersOf) -> str:
    """Return the distinct answers of all seeds, separated by `` | ``."""
    return " | ".join(dict.fromkeys(" ".join(answer.split()) for answer in side.answers))


def _lines(questions: Sequence[QuestionChange]) -> tuple[str, ...]:
    heads = [(q.change, q.instance_id, q.family) for q in questions]
    widths = [max((len(head[i]) for head in heads), default=0) for i in range(3)]
    return tuple(
        "  ".join(
            [*(text.ljust(width) for text, width in zip(head, widths, strict=True)), _side("A", q.a), _side("B", q.b)]
        )
        for head, q in zip(heads, questions, strict=True)
    )


def _side(name: str, side: AnswersOf) -> str:
    """Return a side in words, such as ``A right 2 of 3 “Porto”``, with the answer of the first seed."""
    text = _cut(" ".join(side.answers[0].split())) if side.answers else ""
    return f"{name} {_outcome(side)}" + (f" “{text}”" if text else "")


def _outcome(side: AnswersOf) -> str:
    """Return ``right``, or ``right 2 of 3`` if seeds differ."""
    if not side.outcomes:
        return "not asked"
    kinds = list(dict.fromkeys(side.outcomes))
    if len(kinds) > 1:
        right = fmean(outcome == "correct" for outcome in side.outcomes) * len(side.outcomes)
        return f"right {right:.0f} of {len(side.outcomes)}"
    return {"correct": "right"}.get(kinds[0], kinds[0].replace("_", " "))


def _cut(text: str) -> str:
    return text if len(text) <= ANSWER_WIDTH else text[: ANSWER_WIDTH - 1] + "…"


def questions_csv(comparisons: Sequence[QuestionsCompared]) -> str:
    """Return CSV with a line for each question, full texts, formulas escaped; seeds are separated by `` | ``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for comparison in comparisons:
        for q in comparison.questions:
            outcomes = (" | ".join(side.outcomes) for side in (q.a, q.b))
            answers = (" | ".join(side.answers) for side in (q.a, q.b))
            question_fields = (
                comparison.a.label,
                comparison.b.label,
                q.instance_id,
                q.family,
                q.dimension,
                q.ego,
                q.change,
            )
            writer.writerow(map(csv_cell, (*question_fields, *outcomes, q.question, *answers)))
    return out.getvalue()
