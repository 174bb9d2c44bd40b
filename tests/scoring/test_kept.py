"""Tests *what the memory kept*: shares computed from a memory's own notices, n/a for memories that report no counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from memarena.log.records import AnyRecord, IngestDone, Notice
from memarena.report.document import report_document
from memarena.report.render.html import to_html
from memarena.report.render.json import to_json
from memarena.report.report_input import ReportInput

from ..support import golden_run
from ..support.golden_reports import plain
from ..support.scoring import score_records

BACKEND = "bm25"
TITLE = "What the memory kept"


def _with_notices(records: Sequence[AnyRecord], days: Sequence[Mapping[str, int]]) -> list[AnyRecord]:
    """Return the records with notices (code to count) on the successive days of one backend."""
    remaining_days = iter(days)
    return [
        record.model_copy(
            update={
                "notices": tuple(
                    Notice(code=c, count=n, message="prose ×9") for c, n in next(remaining_days, {}).items()
                )
            }
        )
        if isinstance(record, IngestDone) and record.cell_id.startswith(BACKEND)
        else record
        for record in records
    ]


def test_shares_follow_from_the_memorys_notices() -> None:
    days = (
        {"sessions_given": 3, "extraction_calls": 6, "extraction_unusable": 3, "memories_stored": 2},
        {"sessions_given": 1, "extraction_calls": 2, "extraction_unusable": 2, "extraction_empty": 1},
    )
    run = score_records(_with_notices(golden_run.records(), days)).scores
    row = next(row for row in run.rows if row.backend == BACKEND)
    assert row.kept is not None
    assert (row.kept.days, row.kept.sessions_given, row.kept.days_nothing_stored) == (2, 4, 1)
    assert (row.kept.extraction_calls, row.kept.extraction_unusable, row.kept.memories_stored) == (8, 5, 2)
    assert row.kept.searches > 0
    assert all(other.kept is None for other in run.rows if other.backend != BACKEND)
    text = plain(report_document([ReportInput(run)]))
    table = text.partition(TITLE)[2].partition("\n\n")[0]
    (line,) = (line for line in table.splitlines() if line.startswith(BACKEND))
    assert line.split()[2:9] == ["4", "8", "62.5", "25.0", "0", "2", "0.50"], table
    assert TITLE in to_html([ReportInput(run)])
    (run_report,) = json.loads(to_json([ReportInput(run)]))["runs"]
    assert [each["kept"] and each["kept"]["extraction_unusable"] for each in run_report["rows"]].count(5) == 1


def test_a_memory_without_notices_has_no_line() -> None:
    run = score_records(_with_notices(golden_run.records(), [{"items_left_out": 3}])).scores
    assert TITLE not in plain(report_document([ReportInput(run)]))


def test_calls_that_a_memory_does_not_count_are_not_0() -> None:
    run = score_records(_with_notices(golden_run.records(), [{"sessions_given": 2, "memories_stored": 4}])).scores
    table = plain(report_document([ReportInput(run)])).partition(TITLE)[2].partition("\n\n")[0]
    (line,) = (line for line in table.splitlines() if line.startswith(BACKEND))
    assert line.split()[2:7] == ["2", "0.0", "0", "4", "2.00"], "without columns of calls"
