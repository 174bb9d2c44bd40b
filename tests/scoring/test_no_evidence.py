"""Tests Oracle over a data set without evidence: it has no figures and is not called an upper bound.

Oracle is the diagnostic backend that returns a question's evidence; without evidence it returns nothing.
"""

from __future__ import annotations

import pytest
from memarena.log.records import AnyRecord
from memarena.report.document import report_document
from memarena.report.render.markdown import to_markdown
from memarena.report.report_input import ReportInput
from memarena.scoring.results import RowScores

from ..support import golden_run
from ..support.scoring import score_records


def records(*, evidence: bool, items: bool) -> list[AnyRecord]:
    """Return the log's records.

    ``evidence``: the data set has evidence, which Oracle gets; ``items``: Oracle returns items.
    """
    return [changed(record, evidence=evidence, items=items) for record in golden_run.records()]


def changed(record: AnyRecord, *, evidence: bool, items: bool) -> AnyRecord:
    if record.kind == "run_started":
        cells = tuple(cell.model_copy(update={"send_evidence": cell.diagnostic}) for cell in record.manifest.cells)
        return record.model_copy(update={"manifest": record.manifest.model_copy(update={"cells": cells})})
    if record.kind == "question" and not evidence:
        instance = record.instance.model_copy(update={"evidence_session_ids": ()})
        return record.model_copy(update={"instance": instance})
    if record.kind == "asked" and not items and record.cell_id.startswith("oracle") and record.search:
        return record.model_copy(update={"search": record.search.model_copy(update={"items": ()})})
    return record


def oracle(*, evidence: bool, items: bool) -> tuple[RowScores, RowScores, str]:
    """Return Oracle's row, a competitor's row and the report's text."""
    scores = score_records(records(evidence=evidence, items=items)).scores
    by_backend = {row.label: row for row in scores.rows}
    text = to_markdown(report_document([ReportInput(scores)]))
    return by_backend["oracle@small"], by_backend["bm25@small"], text


def test_without_evidence_oracle_has_no_figure_and_no_part_of_one() -> None:
    row, competitor, text = oracle(evidence=False, items=False)
    assert row.marks == ("no_evidence",)
    assert all(score.low is None for score in row.metrics.values())
    assert all(score.low is None for cell in row.cells for score in cell.metrics.values())
    assert (row.slices, row.permission, row.intervals, row.source) == ((), None, {}, None)
    assert row.counts.asked
    assert competitor.metrics["all"].value is not None
    assert "oracle ◇ ∅" in text
    assert "this data set names none: n/a, and no upper bound" in " ".join(text.split())


@pytest.mark.parametrize(("evidence", "items"), [(True, True), (True, False), (False, True)])
def test_with_evidence_or_items_oracle_keeps_its_figures(evidence: bool, items: bool) -> None:
    row, _, text = oracle(evidence=evidence, items=items)
    assert row.marks == ()
    assert row.metrics["all"].value is not None
    assert "∅" not in text
