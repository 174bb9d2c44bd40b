"""The charts of a run as the report draws them, each with its data as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from memarena.report.charts.bars import ttft_split
from memarena.report.charts.scatter import privacy_utility
from memarena.report.charts.spread import distribution, end_to_end_ms, samples_of, search_over_history
from memarena.report.charts.svg import Figure
from memarena.report.charts.tradeoff import right_over
from memarena.report.charts.trends import accuracy_over
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, row_name, rows_of
from memarena.report.tables.grid import breakdown_keys
from memarena.scoring.results import Score


@dataclass(frozen=True)
class Chart:
    """A drawing, and the figures in it: ``columns`` name them, a row's first is its memory and reader."""

    key: str
    title: str
    caption: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        """As the cache keeps it."""
        return {
            "key": self.key,
            "title": self.title,
            "caption": self.caption,
            "svg": self.svg,
            "columns": self.columns,
            "rows": self.rows,
        }


def drawn_charts(given: ReportInput) -> list[Chart]:
    """Every chart that the run has figures for."""
    rows = rows_of([given])
    found = (*_tradeoffs(rows), *_times(rows, given), *_breakdowns(rows))
    return [chart for chart in found if chart is not None]


def _tradeoffs(rows: Sequence[ReportRow]) -> Iterable[Chart | None]:
    yield _chart(
        privacy_utility(rows, "privacy-utility"),
        ("memory · reader", "privacy P, %", "utility U, %", "J, points"),
        [(row_name(rows, r), *(_share(r.scores.metrics[name]) for name in ("P", "U", "J"))) for r in rows],
    )
    costs: tuple[tuple[Callable[[ReportRow], float | None], str, str, str, str], ...] = (
        (
            _ttft,
            "right-ttft",
            "Right answers against time to the first token",
            "time to the first token with Search, p50, ms",
            "Better is up and to the left: right more often, sooner.",
        ),
        (
            _context_tokens,
            "right-tokens",
            "Right answers against tokens of context",
            "tokens that Search returned, mean (bytes over 4)",
            "Better is up and to the left: right more often, with less for the reader to read.",
        ),
    )
    for cost, key, title, across, caption in costs:
        yield _chart(
            right_over(rows, cost, key, title, across, caption),
            ("memory · reader", "right, %", across),
            [(row_name(rows, r), _share(r.scores.metrics["all"]), _number(cost(r))) for r in rows],
        )


def _times(rows: Sequence[ReportRow], given: ReportInput) -> Iterable[Chart | None]:
    latency = [(row, row.scores.latency) for row in rows]
    yield _chart(
        ttft_split(rows, "ttft-split"),
        ("memory · reader", "Search p50, ms", "prefill p50, ms", "both p50, ms", "both p95, ms"),
        [
            (row_name(rows, r), *(_number(v) for v in (t.search.p50, t.ttft.p50, t.end_to_end.p50, t.end_to_end.p95)))
            for r, t in latency
            if t is not None
        ],
    )
    real = [row for row in rows if row.scores.real_reader]
    samples = {row.tag: samples_of(row, given.questions, end_to_end_ms) for row in real}
    yield _chart(
        distribution(
            real,
            samples,
            "latency",
            "Time to the first token, spread",
            "Search and prefill of every question. The vertical line is the median.",
        ),
        ("memory · reader", "n", "10%, ms", "25%, ms", "50%, ms", "75%, ms", "90%, ms"),
        [(row_name(rows, r), f"{len(samples[r.tag]):,}", *_quantiles(samples[r.tag])) for r in real],
    )
    history = {row.tag: row.costs.history for row in rows if row.costs is not None}
    yield _chart(
        search_over_history(rows, history, "growth"),
        ("memory · reader", "turns in the memory", "Search p50, ms"),
        [
            (row_name(rows, r), f"{bucket.turns_p50:,.0f}", _number(bucket.search.p50))
            for r in rows
            for bucket in history.get(r.tag, ())
        ],
    )


def _breakdowns(rows: Sequence[ReportRow]) -> Iterable[Chart | None]:
    for by, title, across, caption in (
        (
            "lag",
            "Right answers over time passed",
            "days between evidence and question",
            "Share right by how many days ago the evidence was heard. Questions without evidence have no lag.",
        ),
        (
            "interference",
            "Right answers over interfering facts",
            "similar facts that were heard",
            "Share right by how many similar facts the data set counts.",
        ),
    ):
        keys = breakdown_keys(rows, by)
        yield _chart(
            accuracy_over(rows, by, f"right-{by}", title, across, caption),
            ("memory · reader", *(f"{key}, %" for key in keys)),
            [(row_name(rows, r), *(_part(r, by, key) for key in keys)) for r in rows],
        )


def _chart(figure: Figure | None, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Chart | None:
    if figure is None:
        return None
    return Chart(figure.key, figure.title, figure.caption, figure.svg, columns, tuple(rows))


def _ttft(row: ReportRow) -> float | None:
    latency = row.scores.latency
    return latency.end_to_end.p50 if latency is not None and row.scores.real_reader else None


def _context_tokens(row: ReportRow) -> float | None:
    return row.scores.retrieval.context_tokens if row.scores.retrieval is not None else None


def _part(row: ReportRow, by: str, key: str) -> str:
    part = next((s for s in row.scores.slices if s.by == by and s.key == key), None)
    return "n/a" if part is None else f"{_share(part.score)} (n {part.counts.asked:,})"


def _share(score: Score | None) -> str:
    return "n/a" if score is None or score.value is None else f"{100 * score.value:.1f}"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def _quantiles(samples: Sequence[float]) -> tuple[str, ...]:
    if len(samples) < 2:
        return ("n/a",) * 5
    found = quantiles(samples, n=20, method="inclusive")
    return tuple(_number(found[place - 1]) for place in (2, 5, 10, 15, 18))
