"""Builds the tables of times: latency, and TTFT at the gateway next to the model server's prompt time."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, milliseconds, number, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns, trace
from memarena.scoring.results import RowScores


def latency_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of latency by part: Search, floor, TTFT, end to end; None if no row has times."""
    with_latency = [row for row in rows if row.scores.latency is not None]
    if not with_latency:
        return None
    columns = [
        Column("n", "answered questions with times"),
        Column("Search+floor p50", "Search as measured, request to response, with the floor"),
        Column("· p95"),
        Column("· p99"),
        Column("Search p50", "above the floor: less the p50 of a null backend on this machine, not below 0"),
        Column("TTFT p50", "at the gateway: request forwarded to first content"),
        Column("· p95 "),
        Column("rest p50", "the remainder of Answer up to its first text: own search, prompt, other calls"),
        Column("S+TTFT p50", "Search+floor and TTFT: end to end, as the paper composes it"),
        Column("seen p50", "first text as observed from the request of Answer on"),
    ]
    body = [[*lead_cells(rows, row, of_times=True), *_latency_cells(row.scores)] for row in with_latency]
    notes = ["n/a: too few samples (p50 needs 11, p90 64, p95 130, p99 662) or nothing to measure"]
    notes += _segment_notes(with_latency)
    lead = lead_columns(rows)
    return section(
        "Latency at concurrency 1, ms",
        [*lead, *columns],
        body,
        notes,
        breaks=breaks(with_latency),
        trace=trace(with_latency),
    )


def _latency_cells(row: RowScores) -> list[Cell]:
    latency = row.latency
    if latency is None:
        return [NA] * 10
    return [
        whole(latency.search.n),
        milliseconds(latency.search.p50),
        milliseconds(latency.search.p95),
        milliseconds(latency.search.p99),
        milliseconds(latency.search_less_floor_p50),
        milliseconds(latency.ttft.p50),
        milliseconds(latency.ttft.p95),
        milliseconds(latency.rest.p50),
        milliseconds(latency.end_to_end.p50),
        milliseconds(latency.first_delta.p50),
    ]


def _segment_notes(rows: Sequence[ReportRow]) -> list[str]:
    """Return notes on samples of other segments that were left out, since times of two processes are never pooled."""
    return [
        f"{row.scores.label}: times of segment {latency.segment + 1} only, {latency.left_out} samples of "
        f"{latency.segments - 1} other segments left out"
        for row in rows
        if (latency := row.scores.latency) is not None and latency.segments > 1
    ]


def stopwatch_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of TTFT at the gateway next to the prompt time that the model server reports."""
    with_server_time = [row for row in rows if row.scores.latency is not None and row.scores.latency.server_prompt.n]
    if not with_server_time:
        return None
    columns = [
        Column("n"),
        Column("TTFT p50", "at the gateway, ms"),
        Column("server p50", "the server's own prompt time, ms"),
        Column("difference"),
    ]
    body = []
    for row in with_server_time:
        latency = row.scores.latency
        gateway_ms, server_ms = (latency.gateway_ttft.p50, latency.server_prompt.p50) if latency else (None, None)
        gap = None if gateway_ms is None or server_ms is None else gateway_ms - server_ms
        count = latency.server_prompt.n if latency else 0
        cells = [whole(count), milliseconds(gateway_ms), milliseconds(server_ms), number(gap)]
        body.append([*lead_cells(rows, row, of_times=True), *cells])
    title = "TTFT and the server's own prompt time"
    return section(title, [*lead_columns(rows), *columns], body, breaks=breaks(with_server_time))
