"""Tables of times: latency, TTFT beside the server's own prompt time."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, milliseconds, number, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns, trace
from memarena.scoring.results import RowScores


def latency_table(rows: Sequence[ReportRow]) -> Section | None:
    """Where the time goes."""
    timed = [row for row in rows if row.scores.latency is not None]
    if not timed:
        return None
    columns = [
        Column("n", "answered questions with times"),
        Column("search p50", "Search as measured, request to response, with the floor, ms"),
        Column("· p95"),
        Column("· p99"),
        Column("less floor", "search p50 without the floor: less that of a null backend on this machine"),
        Column("TTFT p50", "at the gateway: request forwarded to first content, ms"),
        Column("· p95 "),
        Column("rest p50", "the remainder of Answer up to its first text: own search, prompt, other calls"),
        Column("sum p50", "search + TTFT: end to end, as the paper composes it"),
        Column("seen p50", "first text as observed from the request of Answer on"),
    ]
    body = [[*lead_cells(rows, row), *_latency_cells(row.scores)] for row in timed]
    notes = ["n/a: too few samples (p50 needs 11, p90 64, p95 130, p99 662) or nothing to measure"]
    notes += _segment_notes(timed)
    lead = lead_columns(rows)
    return section(
        "Latency at concurrency 1, ms", [*lead, *columns], body, notes, breaks=breaks(timed), trace=trace(timed)
    )


def _latency_cells(row: RowScores) -> list[Cell]:
    found = row.latency
    if found is None:
        return [NA] * 10
    return [
        whole(found.search.n),
        milliseconds(found.search.p50),
        milliseconds(found.search.p95),
        milliseconds(found.search.p99),
        milliseconds(found.search_less_floor_p50),
        milliseconds(found.ttft.p50),
        milliseconds(found.ttft.p95),
        milliseconds(found.rest.p50),
        milliseconds(found.end_to_end.p50),
        milliseconds(found.first_delta.p50),
    ]


def _segment_notes(rows: Sequence[ReportRow]) -> list[str]:
    """Which samples were left out, since times of two processes never mix."""
    return [
        f"{row.scores.label}: times of segment {found.segment + 1} only, {found.left_out} samples of "
        f"{found.segments - 1} other segments left out"
        for row in rows
        if (found := row.scores.latency) is not None and found.segments > 1
    ]


def stopwatch_table(rows: Sequence[ReportRow]) -> Section | None:
    """TTFT at the gateway beside the model server's own prompt time."""
    checked = [row for row in rows if row.scores.latency is not None and row.scores.latency.server_prompt.n]
    if not checked:
        return None
    columns = [
        Column("n"),
        Column("TTFT p50", "at the gateway, ms"),
        Column("server p50", "the server's own prompt time, ms"),
        Column("difference"),
    ]
    body = []
    for row in checked:
        found = row.scores.latency
        ours, theirs = (found.gateway_ttft.p50, found.server_prompt.p50) if found else (None, None)
        gap = None if ours is None or theirs is None else ours - theirs
        count = found.server_prompt.n if found else 0
        cells = [whole(count), milliseconds(ours), milliseconds(theirs), number(gap)]
        body.append([*lead_cells(rows, row), *cells])
    title = "TTFT beside the server's own prompt time"
    return section(title, [*lead_columns(rows), *columns], body, breaks=breaks(checked))
