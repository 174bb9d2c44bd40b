"""Builds the tables of the cost of answers: tokens and speed, and Search by length of history."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, milliseconds, number, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns
from memarena.scoring.costs import BUCKETS, Efficiency


def efficiency_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of tokens, speed and time of an answer; None if no row has these figures."""
    with_costs = [row for row in rows if row.costs is not None and row.costs.efficiency is not None]
    if not with_costs:
        return None
    columns = [
        Column("n", "answered questions"),
        Column("calls", "model calls per answer, mean"),
        Column("prompt", "tokens of the prompt that was answered from, p50"),
        Column("answer", "tokens of the answer, p50"),
        Column("tokens/s", "decoding: tokens after the first over the time from first to last content, p50"),
        Column("total p50", "Answer from its request to its end, ms"),
        Column("· p95"),
    ]
    body = []
    for row in with_costs:
        efficiency = row.costs.efficiency if row.costs else None
        if efficiency is None:
            body.append([*lead_cells(rows, row, of_times=True), *[NA] * len(columns)])
            continue
        body.append(
            [
                *lead_cells(rows, row, of_times=True),
                whole(efficiency.questions),
                *([NA] * 4 if row.scores.own_model else _models(efficiency, real=row.scores.real_reader)),
                milliseconds(efficiency.answer_ms.p50),
                milliseconds(efficiency.answer_ms.p95),
            ]
        )
    notes = ["n/a: too few samples (p50 needs 11), or the model server reports no tokens"]
    return section("Efficiency of one answer", [*lead_columns(rows), *columns], body, notes, breaks=breaks(with_costs))


def _models(efficiency: Efficiency, *, real: bool) -> list[Cell]:
    return [
        number(efficiency.model_calls, 2),
        number(efficiency.prompt_tokens_p50, 0),
        number(efficiency.completion_tokens_p50, 0),
        number(efficiency.decode_tokens_per_s_p50) if real else NA,  # no model: nothing is decoded
    ]


def history_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of Search against length of history: a pair of columns for each quarter of the questions."""
    histories = [(row, row.costs.history) for row in rows if row.costs is not None and row.costs.history]
    if not histories:
        return None
    columns = [
        column
        for quarter in range(1, BUCKETS + 1)
        for column in (
            Column(f"turns {quarter}", _QUARTERS if quarter == 1 else ""),
            Column(f"p50 {quarter}", "median Search+floor over them, ms" if quarter == 1 else ""),
        )
    ]
    body = []
    for row, buckets in histories:
        pairs = [(number(b.turns_p50, 0), milliseconds(b.search.p50)) for b in buckets]
        pairs += [(NA, NA)] * (BUCKETS - len(buckets))
        body.append([*lead_cells(rows, row, of_times=True), *(cell for pair in pairs for cell in pair)])
    notes = ["n/a: too few samples (p50 needs 11)"]
    rules = breaks([row for row, _ in histories])
    return section("Search against length of history", [*lead_columns(rows), *columns], body, notes, breaks=rules)


_QUARTERS = "turns in the memory when asked: median of the quarter of the questions with the fewest, of the next, …"
