"""Lists the charts of comparable runs, each with a table of its data, for the HTML report, the viewer and the site."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Literal

from memarena.report.charts.bars import average_intervals, ttft_split
from memarena.report.charts.growth import ingest_over_days, search_over_days, search_over_history
from memarena.report.charts.permission import OUTCOMES, deny_counts, deny_outcomes, f1_pu, f1_pu_heat
from memarena.report.charts.scatter import privacy_utility, recall_reasoning
from memarena.report.charts.spread import distribution, end_to_end_ms, samples_of, search_ms
from memarena.report.charts.svg import Figure
from memarena.report.charts.tradeoff import right_over
from memarena.report.charts.trends import accuracy_over
from memarena.report.figures import average_to_rank_by
from memarena.report.layout import Cell, Column, Table
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, row_name
from memarena.report.tables.grid import breakdown_keys
from memarena.scoring.figures import Score
from memarena.scoring.results import QuestionScore

Chapter = Literal["scores", "permission", "time", "growth", "breakdowns"]
CHAPTERS: dict[Chapter, str] = {
    "scores": "Scores",
    "permission": "Permission",
    "time": "Time and cost",
    "growth": "Growth over days",
    "breakdowns": "Breakdowns",
}
"""Titles of the chapters, in their order."""
QUANTILES = (10, 25, 50, 75, 90)
"""Percentiles in the table of a distribution, multiples of 5."""


@dataclass(frozen=True)
class Chart:
    """A drawing with its chapter and the table of its data, whose first column is memory and reader."""

    chapter: Chapter
    figure: Figure
    data: Table


def charts_of(rows: Sequence[ReportRow], runs: Sequence[ReportInput], ending: str = "") -> list[Chart]:
    """Return every chart for which the rows have figures.

    Args:
        rows: of comparable runs.
        runs: all runs, as the rows count them.
        ending: of the charts' keys, where a page holds several groups of rows.
    """
    questions = {row.tag: runs[row.run - 1].questions for row in rows}
    charts = (*_scores(rows, ending), *_times(rows, questions, ending), *_growth(rows, ending), *_parts(rows, ending))
    return [chart for chart in charts if chart is not None]


def _scores(rows: Sequence[ReportRow], ending: str) -> Iterator[Chart | None]:
    """Yield the charts of averages, right answers against costs, and permission; None without figures."""
    average = average_to_rank_by([row.scores for row in rows])
    yield _chart(
        "scores",
        average_intervals(rows, f"fig-avg{ending}"),
        (f"{average}, %", "95% interval from, %", "to, %"),
        [(row_name(rows, r), _share(r.scores.metrics[average]), *_interval(r, average)) for r in rows],
    )
    yield _chart(
        "scores",
        recall_reasoning(rows, f"fig-recall{ending}"),
        ("recall, %", "reasoning, %"),
        [(row_name(rows, r), *(_share(r.scores.metrics[name]) for name in ("Rec", "Rea"))) for r in rows],
    )
    across = "S+TTFT p50, ms"
    yield _chart(
        "scores",
        right_over(
            rows,
            _ttft,
            f"fig-right-ttft{ending}",
            "Right answers against time to the first token",
            across,
            "Better is up and to the left: right more often, sooner.",
        ),
        ("right, %", across),
        [(row_name(rows, r, of_times=True), _share(r.scores.metrics["all"]), _number(_ttft(r))) for r in rows],
    )
    across = "tokens that Search returned, mean (bytes over 4)"
    yield _chart(
        "scores",
        right_over(
            rows,
            _context_tokens,
            f"fig-right-tokens{ending}",
            "Right answers against tokens of context",
            across,
            "Better is up and to the left: right more often, with less for the reader to read.",
        ),
        ("right, %", across),
        [(row_name(rows, r), _share(r.scores.metrics["all"]), _number(_context_tokens(r))) for r in rows],
    )
    yield _chart(
        "permission",
        privacy_utility(rows, f"fig-privacy{ending}"),
        ("privacy P, %", "utility U, %", "J, points"),
        [(row_name(rows, r), *(_share(r.scores.metrics[name]) for name in ("P", "U", "J"))) for r in rows],
    )
    yield _chart(
        "permission",
        f1_pu_heat(rows, f"fig-f1-pu{ending}"),
        ("F1_PU, %",),
        [(row_name(rows, r), _percent(f1_pu(r))) for r in rows],
    )
    yield _chart(
        "permission",
        deny_outcomes(rows, f"fig-deny{ending}"),
        OUTCOMES,
        [(row_name(rows, r), *(f"{count:,}" for count in deny_counts(r))) for r in rows],
    )


def _times(
    rows: Sequence[ReportRow], questions: dict[str, tuple[QuestionScore, ...]], ending: str
) -> Iterator[Chart | None]:
    """Yield the charts of times: medians of Search and TTFT, and distributions; None without figures."""
    by_row = [(row, row.scores.latency) for row in rows]
    yield _chart(
        "time",
        ttft_split(rows, f"fig-ttft{ending}"),
        ("Search+floor p50, ms", "TTFT p50, ms", "S+TTFT p50, ms", "S+TTFT p95, ms"),
        [
            (
                row_name(rows, r, of_times=True),
                *(_number(v) for v in (t.search.p50, t.ttft.p50, t.end_to_end.p50, t.end_to_end.p95)),
            )
            for r, t in by_row
            if t is not None
        ],
    )
    real = [row for row in rows if row.scores.real_reader]
    for own, value, key, title, caption in (
        (
            real,
            end_to_end_ms,
            "fig-end-to-end",
            "Time to the first token, spread",
            "S+TTFT of every question. The vertical line is the median.",
        ),
        (
            rows,
            search_ms,
            "fig-search",
            "Search+floor, spread",
            "What the memory adds to every question. The vertical line is the median.",
        ),
    ):
        samples = {row.tag: samples_of(row, questions[row.tag], value) for row in own}
        yield _chart(
            "time",
            distribution(own, samples, f"{key}{ending}", title, caption),
            ("n", *(f"{q}%, ms" for q in QUANTILES)),
            [(row_name(rows, r, of_times=True), f"{len(samples[r.tag]):,}", *_quantiles(samples[r.tag])) for r in own],
        )


def _growth(rows: Sequence[ReportRow], ending: str) -> Iterator[Chart | None]:
    """Yield the charts of Search and ingest over the history; None without figures."""
    costs = [(row, row.costs) for row in rows if row.costs is not None]
    yield _chart(
        "growth",
        search_over_history(rows, f"fig-history{ending}"),
        ("turns in the memory", "Search+floor p50, ms"),
        [
            (row_name(rows, r, of_times=True), f"{b.turns_p50:,.0f}", _number(b.search.p50))
            for r, c in costs
            for b in c.history
        ],
    )
    yield _chart(
        "growth",
        search_over_days(rows, f"fig-days{ending}"),
        ("day", "turns in the memory, mean", "questions", "Search+floor p50, ms"),
        [
            (
                row_name(rows, r, of_times=True),
                str(d.day),
                f"{d.turns_held:,.0f}",
                f"{d.search.n:,}",
                _number(d.search.p50),
            )
            for r, c in costs
            for d in c.days
        ],
    )
    yield _chart(
        "growth",
        ingest_over_days(rows, f"fig-ingest{ending}"),
        ("day", "turns in the memory, mean", "taking the day in, mean, ms"),
        [
            (row_name(rows, r, of_times=True), str(d.day), f"{d.turns_held:,.0f}", _number(d.ingest_ms))
            for r, c in costs
            for d in c.days
        ],
    )


def _parts(rows: Sequence[ReportRow], ending: str) -> Iterator[Chart | None]:
    """Yield the charts of accuracy by lag and by number of interfering facts; None without figures."""
    for by, title, across, caption in (
        (
            "lag",
            "Accuracy over time passed",
            "days between evidence and question",
            "Share answered right by how many days ago the evidence was heard. Questions without evidence have no lag.",
        ),
        (
            "interference",
            "Accuracy over interfering facts",
            "similar facts that were heard",
            "How well a fact is told apart from similar ones, of another person or another time.",
        ),
    ):
        keys = breakdown_keys(rows, by)
        yield _chart(
            "breakdowns",
            accuracy_over(rows, by, f"fig-{by}{ending}", title, across, caption),
            tuple(f"{key}, %" for key in keys),
            [(row_name(rows, r), *(_part(r, by, key) for key in keys)) for r in rows],
        )


# ------------------------------------------------------------------ figures


def _chart(
    chapter: Chapter, figure: Figure | None, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]
) -> Chart | None:
    if figure is None:
        return None
    titles = (Column("memory · reader", align="left"), *(Column(title) for title in columns))
    return Chart(chapter, figure, Table(titles, tuple(tuple(Cell(text) for text in row) for row in rows)))


def _ttft(row: ReportRow) -> float | None:
    latency = row.scores.latency
    return latency.end_to_end.p50 if latency is not None and row.scores.real_reader else None


def _context_tokens(row: ReportRow) -> float | None:
    return row.scores.retrieval.context_tokens if row.scores.retrieval is not None else None


def _interval(row: ReportRow, metric: str) -> tuple[str, str]:
    interval = row.scores.intervals.get(metric)
    return ("n/a", "n/a") if interval is None else (f"{100 * interval.low:.1f}", f"{100 * interval.high:.1f}")


def _part(row: ReportRow, by: str, key: str) -> str:
    part = next((s for s in row.scores.slices if s.by == by and s.key == key), None)
    return "n/a" if part is None else f"{_share(part.score)} (n {part.counts.asked:,})"


def _share(score: Score | None) -> str:
    return "n/a" if score is None or score.value is None else f"{100 * score.value:.1f}"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f}"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def _quantiles(samples: Sequence[float]) -> tuple[str, ...]:
    if len(samples) < 2:
        return ("n/a",) * len(QUANTILES)
    cuts = quantiles(samples, n=20, method="inclusive")
    return tuple(_number(cuts[q // 5 - 1]) for q in QUANTILES)
