"""Returns the paper's tables as lines of labels and figures, for tables in any form of the published data.

The data hold some tables as typed records and some as printed; the document needs all in one form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memarena.paper.published import load_published
from memarena.paper.published_types import Figure, GridCell, PrintedRow, PrintedTable, SweepRow

_DEPTHS = ("4", "8", "16", "32")
_IN_TEXT = {
    "retrieval-depth": (_DEPTHS, ("all", "D1", "D6 as accuracy", "D5")),
    "dense-depth": ((*_DEPTHS, *(f"{depth}, headers" for depth in _DEPTHS)), ("all", "D4")),
}
"""(lines, columns) by table, for those for which the paper has at most a range in its text."""


@dataclass(frozen=True)
class _StoredTable:
    """A table in the published data: its records, the fields that label a line, and the field of each column."""

    records: str
    labels: tuple[str, ...]
    columns: Mapping[str, str | Callable[[Any], float | None]]


def _prefill(cell: GridCell) -> float | None:
    return None if cell.ttft_ms is None else cell.ttft_ms.value - cell.search_ms


def _leaked(cell: GridCell) -> float | None:
    rows = load_published().buckets
    return next((row.leak for row in rows if (row.backend, row.reader) == (cell.backend, cell.reader)), None)


def _gap(row: SweepRow) -> float:
    return row.deny_leaked - row.allow_disclosed


_CELL = ("backend", "reader")
_STORED: Mapping[str, _StoredTable] = {
    "results-L": _StoredTable(
        "grid", _CELL,
        {"Rec": "rec", "Rea": "rea", "Trust": "trust", "Avg": "avg", "TTFT ms": "ttft_ms", "search ms": "search_ms"},
    ),
    "results-L-full": _StoredTable(
        "grid", _CELL, {"D1": "d1", "D2": "d2", "D3": "d3", "D4": "d4", "D5": "d5", "mean of D1 to D5": "avg_five"}
    ),
    "results-L-f1": _StoredTable(
        "token_f1", _CELL,
        {name: name for name in ("conflict", "anaphora", "qa", "temporal", "counterfactual", "metadata")},
    ),
    "results-L-privacy": _StoredTable(
        "privacy", _CELL, {"Withhold": "withhold", "False Ref.": "false_refusal", "Utility": "utility"}
    ),
    "fig-d6-f1pu-heatmap": _StoredTable("grid", _CELL, {"F1_PU": "f1_pu"}),
    "fig-rec-rea-scatter": _StoredTable("grid", _CELL, {"Rec": "rec", "Rea": "rea"}),
    "fig-core-findings": _StoredTable(
        "grid", _CELL,
        {"disclosed on DENY": _leaked, "F1_PU": "f1_pu", "search ms": "search_ms", "prefill ms": _prefill},
    ),
    "main-grid-bootstrap": _StoredTable(
        "bootstrap", ("reader", "metric"), {"difference": "difference", "95% low": "low", "95% high": "high"}
    ),
    "d6-ablation-buckets": _StoredTable(
        "buckets", _CELL,
        {"disclosed": "leak", "no access": "no_access", "don't know": "dont_know", "other": "other",
         "refusals": "refusal_share"},
    ),
    "d6-ablation-sweep": _StoredTable(
        "sweep", ("lever", "variant"),
        {"cells": "cells", "U": "allow_disclosed", "leaked on DENY": "deny_leaked", "gap": _gap, "F1_PU": "f1_pu"},
    ),
    "efficiency": _StoredTable(
        "efficiency", _CELL,
        {"TTFT ms": "ttft_ms", "decoding tokens/s": "decode_tokens_per_s", "total s": "total_s", "tokens": "tokens"},
    ),
    "appendix-latency-fit": _StoredTable(
        "latency_fit", ("reader",),
        {"α ms": "alpha_ms", "β ms/1k prompt tokens": "beta_ms", "γ ms/token": "gamma_ms", "R²": "r2",
         "n": "observations", "residual p95 ms": "residual_p95_ms"},
    ),
    "appendix-latency-predicted": _StoredTable(
        "totals", ("reader",),
        {"Vanilla": "vanilla", "Oracle": "oracle", "RAG": "in_memory", "Memobase": "memobase",
         "MemSearch": "memsearch"},
    ),
    "appendix-ingest-overhead": _StoredTable(
        "ingest", ("reader",),
        {"s": "wall_s", "kJ": "energy_kj", "batches": "batches", "J per ego and day": "j_per_ego_day", "W": "mean_w"},
    ),
}  # fmt: skip


def published_table(name: str) -> PrintedTable:
    """Return the table of that name; without figures if the paper has only a range in its text."""
    published = load_published()
    if name in _IN_TEXT:
        depths, columns = _IN_TEXT[name]
        lines = tuple(PrintedRow(labels=(depth,), figures=(None,) * len(columns)) for depth in depths)
        return PrintedTable(name=name, title="", labels=("depth",), columns=columns, rows=lines)
    if (table := _STORED.get(name)) is None:
        return next(printed for printed in published.printed if printed.name == name)
    rows = tuple(
        PrintedRow(
            labels=tuple(getattr(record, label) for label in table.labels),
            figures=tuple(_figure(record, field) for field in table.columns.values()),
        )
        for record in getattr(published, table.records)
    )
    return PrintedTable(name=name, title="", labels=table.labels, columns=tuple(table.columns), rows=rows)


def _figure(record: Any, field: str | Callable[[Any], float | None]) -> Figure | None:
    figure = field(record) if callable(field) else getattr(record, field)
    return figure if figure is None or isinstance(figure, Figure) else Figure(value=float(figure))
