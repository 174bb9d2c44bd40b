"""Builds the table of agreement of annotators with each other and with the judge, by dimension.

An annotator is a person who labelled answers without seeing verdicts. The table shows how far a judge can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import number, percent, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.people import LabelledPart, LabelledSample

_COLUMNS = (
    Column("sample", align="left"),
    Column("dimension", align="left"),
    Column("items", "answers in the sample"),
    Column("people: items", "answers that every annotator labelled"),
    Column("Fleiss' κ", "agreement of the annotators with each other beyond chance"),
    Column("judge: items", "answers with a label by more than half of at least three annotators, and by the judge"),
    Column("agree", "of those, percent on which the judge has the majority's label"),
    Column("Cohen's κ", "the same beyond chance"),
)


def people_section(samples: Sequence[LabelledSample]) -> list[Section]:
    """Return one table of all samples; an empty list if there are none."""
    if not samples:
        return []
    rows = [_row(sample.run_id, part) for sample in samples for part in sample.parts]
    notes = [f"{s.run_id}: {s.annotators} annotators, judge {s.judge}" for s in samples]
    if any(sample.annotators < 3 for sample in samples):
        notes.append("a majority takes three annotators")
    notes.append("κ is n/a where all labels are the same")
    return [section("Agreement with people", _COLUMNS, rows, notes)]


def _row(run_id: str, part: LabelledPart) -> list[Cell]:
    return [
        Cell(run_id),
        Cell(part.name),
        whole(part.items),
        whole(part.fleiss_items),
        number(part.fleiss_kappa, 3),
        whole(part.compared),
        percent(part.agree),
        number(part.kappa, 3),
    ]
