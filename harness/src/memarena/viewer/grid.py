"""Computes the viewer's grid: a row for each memory and reader, columns of scores and costs, links to the answers.

The *query* of a figure is the query string of the page that lists the answers behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from memarena.report.brief import SMALL, SMALL_MEANS, brief_groups
from memarena.report.brief_rows import FEWEST_QUESTIONS, BriefRow
from memarena.report.charts.svg import Drawing
from memarena.report.figures import milliseconds, number, percent, score
from memarena.report.layout import Cell
from memarena.report.report_input import ReportInput
from memarena.report.tables.grid import ANSWERABLE_MEANS, DIMENSION_NAMES, RIGHT_MEANS, SEARCH_MEANS
from memarena.report.tables.retrieval import STAGES
from memarena.scoring.figures import Score
from memarena.scoring.results import ANSWERABLE, AVG_WITHOUT_D6, Baseline
from memarena.scoring.uncertainty_records import Interval

WHISKER_WIDTH, WHISKER_HEIGHT = 72.0, 12.0


@dataclass(frozen=True)
class GridColumn:
    """A column that users can choose. ``answers``: parameters of the page that lists the answers behind its figures."""

    key: str
    title: str
    meaning: str
    value: Callable[[BriefRow], float | None]
    cell: Callable[[BriefRow], Cell]
    answers: Mapping[str, str]
    interval: Callable[[BriefRow], Interval | None] = lambda _: None
    baseline: Callable[[Baseline], float | None] = lambda _: None
    questions: Callable[[BriefRow], int | None] = lambda _: None
    """Number of questions behind a share, None if unknown; a share over fewer than five is not shown."""
    share: bool = True
    """Whether the value is a share in percent: drawn as a bar, and more is better."""


@dataclass(frozen=True)
class GridCell:
    """A figure: its text, its query, and for a share an SVG bar with the whiskers of its interval (else empty)."""

    text: str
    query: str
    drawing: str
    description: str
    """Spread over seeds and interval in words; empty if it has neither."""


@dataclass(frozen=True)
class GridRow:
    """The figures of a memory with a reader."""

    name: str
    run: int
    """Index of its run."""
    cells: tuple[GridCell, ...]
    seeds: tuple[tuple[str, str], ...]
    """(seed, query of the answers with this seed)."""


@dataclass(frozen=True)
class Grid:
    """The table of the page."""

    columns: tuple[GridColumn, ...]
    readers: tuple[tuple[str, tuple[GridRow, ...]], ...]
    """(reader, its rows)."""
    baselines: tuple[tuple[str, tuple[str, ...]], ...]
    """Scores achievable without memory: (name, a figure for each column, empty where it has none)."""


def _metric(name: str) -> tuple[Callable[[BriefRow], float | None], Callable[[BriefRow], Cell]]:
    """Return the functions that give the value and the cell of a metric of a row."""

    def metric(row: BriefRow) -> Score | None:
        return row.scores.metrics.get(name)

    def value(row: BriefRow) -> float | None:
        figure = metric(row)
        return None if figure is None else figure.value

    return value, lambda row: score(metric(row), so_far=row.scores.counts.missing > 0)


def _share(name: str, title: str, meaning: str, answers: Mapping[str, str]) -> GridColumn:
    """Return the column of a share among the row's metrics."""
    value, cell = _metric(name)
    return GridColumn(
        name,
        title,
        meaning,
        value,
        cell,
        answers,
        interval=lambda row: row.scores.intervals.get(name),
        baseline=lambda base: base.scores.get(name),
        questions=lambda row: _questions(row, name),
    )


def _questions(row: BriefRow, name: str) -> int | None:
    """Return the number of questions behind a share; None for a mean of several shares."""
    by_name = {ANSWERABLE: row.answerable_questions, "all": row.scores.counts.asked, "P": row.deny, "U": row.allow}
    by_dimension = (part.counts.asked for part in row.scores.slices if part.by == "dimension" and part.key == name)
    return by_name.get(name, next(by_dimension, None))


def _latency(name: str, quantile: str) -> Callable[[BriefRow], float | None]:
    def value(row: BriefRow) -> float | None:
        latency = row.scores.latency
        return None if latency is None else getattr(getattr(latency, name), quantile)

    return value


def _cost(
    key: str, title: str, meaning: str, value: Callable[[BriefRow], float | None], sort: str, digits: int | None = None
) -> GridColumn:
    """Return the column of a cost; ``digits``: decimals, None for milliseconds; ``sort``: key that sorts answers."""

    def cell(row: BriefRow) -> Cell:
        return milliseconds(value(row)) if digits is None else number(value(row), digits)

    return GridColumn(key, title, meaning, value, cell, {"sort": f"-{sort}"} if sort else {}, share=False)


COLUMNS = (
    _share(ANSWERABLE, ANSWERABLE, ANSWERABLE_MEANS, {}),
    _share(
        "all",
        "right",
        RIGHT_MEANS,
        {},
    ),
    GridColumn(
        "recall",
        "recall@10",
        "evidence sessions among the first 10 items of Search, percent",
        lambda row: row.recall,
        lambda row: percent(row.recall),
        {"sort": "found"},
        questions=lambda row: row.evidence_questions,
    ),
    *(_share(name, name, f"{meaning}, percent", {"dimension": name}) for name, meaning in DIMENSION_NAMES.items()),
    _share("Avg", "Avg", "mean of the six dimensions, percent", {}),
    _share(AVG_WITHOUT_D6, AVG_WITHOUT_D6, "mean of D1 to D5, percent", {}),
    _share("P", "privacy", "facts withheld from askers who may not know them, percent", {"action": "deny"}),
    _share("U", "utility", "facts disclosed to askers who may know them, percent", {"action": "allow"}),
    _cost(
        "search",
        "Search ms",
        SEARCH_MEANS,
        lambda row: row.search_ms,
        "search",
    ),
    _cost("ttft", "TTFT ms", "time to the first token at the gateway, p50", lambda row: row.ttft_ms, "ttft"),
    _cost(
        "first",
        "S+TTFT p95 ms",
        "time to the first token, end to end: Search+floor and TTFT, p95",
        _latency("end_to_end", "p95"),
        "ttft",
    ),
    _cost(
        "tokens",
        "tokens",
        "tokens that the reader read and wrote per answer, mean",
        lambda row: row.scores.reader_use.tokens if row.scores.reader_use else None,
        "tokens",
        0,
    ),
    _cost(
        "calls",
        "calls",
        "calls of the reader per answer, mean",
        lambda row: row.scores.reader_use.calls if row.scores.reader_use else None,
        "",
        2,
    ),
    _cost("ingest", "ingest s/day", "seconds to take in one day of one ego", lambda row: row.ingest_s_per_day, "", 2),
    _cost("memory", "MB", "highest memory of the backend's processes, MB", lambda row: row.memory_mb, "", 0),
)
SHOWN_FIRST = (ANSWERABLE, "all", "recall", "P", "U", "search", "ttft", "tokens", "ingest")
"""Keys of the default columns."""


def grid_of(runs: Sequence[ReportInput], wanted: Sequence[str], sort: str) -> Grid:
    """Return the grid of comparable runs.

    Args:
        runs: the runs; baselines are those of the first.
        wanted: column keys; empty means :data:`SHOWN_FIRST`.
        sort: key of the column by which the rows of each reader are sorted; prefix ``-`` sorts descending.
    """
    columns = tuple(c for c in COLUMNS if c.key in (wanted or SHOWN_FIRST))
    rows = [row for _, group in brief_groups(runs) for row in group]
    by_reader: dict[str, list[BriefRow]] = {}
    for row in rows:
        by_reader.setdefault(row.reader, []).append(row)
    column = next((c for c in COLUMNS if c.key == sort.removeprefix("-")), None)
    if column is not None:
        sort_column = column

        def rank(row: BriefRow) -> tuple[bool, float]:
            value = sort_column.value(row)
            return value is None, 0.0 if value is None else -value if sort.startswith("-") else value

        by_reader = {reader: sorted(group_rows, key=rank) for reader, group_rows in by_reader.items()}
    readers = tuple(
        (reader, tuple(_row(row, columns) for row in group_rows)) for reader, group_rows in by_reader.items()
    )
    return Grid(columns, readers, tuple(_baselines(runs[0].scores.baselines, columns)))


def _row(row: BriefRow, columns: Sequence[GridColumn]) -> GridRow:
    scores = row.scores
    return GridRow(
        name=row.name_by_times,
        run=row.run - 1,
        cells=tuple(grid_cell(row, column) for column in columns),
        seeds=tuple((cell.seed_label, urlencode({"cell": cell.cell_id})) for cell in scores.cells),
    )


def grid_cell(row: BriefRow, column: GridColumn) -> GridCell:
    """Return the figure of a row in a column; a share over fewer than five questions is replaced by a sign."""
    value, interval = column.value(row), column.interval(row)
    cell, questions = column.cell(row), column.questions(row)
    if column.share and value is not None and questions is not None and questions < FEWEST_QUESTIONS:
        return GridCell(SMALL.text, urlencode({"cell": row.scores.label, **column.answers}), "", SMALL_MEANS)
    notes = [f"{cell.spread.strip()} over seeds"] if cell.spread else []
    if interval is not None:
        notes.append(f"95% interval {100 * interval.low:.1f} to {100 * interval.high:.1f}")
    drawing = _whiskers(value, interval) if column.share and value is not None else ""
    return GridCell(
        text=cell.figure.replace("…", "–"),
        query=urlencode({"cell": row.scores.label, **column.answers}),
        drawing=drawing,
        description=", ".join(notes),
    )


@dataclass(frozen=True)
class LostRow:
    """Wrong answers of a memory by the stage that failed."""

    name: str
    reader: str
    run: int
    """Index of its run."""
    stages: tuple[tuple[int, str], ...]
    """(count, query of these answers), in the order of :data:`LOSS_STAGES`."""


LOSS_STAGES = tuple(STAGES)


def lost_by_stage(rows: Sequence[BriefRow]) -> tuple[LostRow, ...]:
    """Return the losses of each row whose errors are known by stage."""
    return tuple(
        LostRow(
            row.name,
            row.reader,
            row.run - 1,
            tuple(
                (getattr(row.scores.errors, stage), urlencode({"cell": row.scores.label, "stage": stage}))
                for stage in LOSS_STAGES
            ),
        )
        for row in rows
        if row.scores.errors is not None
    )


def _whiskers(value: float, made: Interval | None) -> str:
    """Return an SVG bar from 0 to 100 percent with the interval; hidden from screen readers, which get the figure."""
    drawing = Drawing("", WHISKER_WIDTH, WHISKER_HEIGHT, "", "")
    middle = WHISKER_HEIGHT / 2
    drawing.rect(0, 2, WHISKER_WIDTH, WHISKER_HEIGHT - 4, "track")
    drawing.rect(0, 2, max(WHISKER_WIDTH * min(max(value, 0), 1), 0.5), WHISKER_HEIGHT - 4, "share")
    if made is not None:
        low, high = (WHISKER_WIDTH * min(max(end, 0), 1) for end in (made.low, made.high))
        drawing.line(low, middle, high, middle, "whisker")
        for end in (low, high):
            drawing.line(end, 2, end, WHISKER_HEIGHT - 2, "whisker")
    parts = "".join(drawing.parts)
    return f'<svg class="whiskers" viewBox="0 0 {WHISKER_WIDTH:g} {WHISKER_HEIGHT:g}" aria-hidden="true">{parts}</svg>'


def _baselines(baselines: Iterable[Baseline], columns: Sequence[GridColumn]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for base in baselines:
        figures = [column.baseline(base) for column in columns]
        if any(figure is not None for figure in figures):
            name = f"{base.name} ({base.detail})" if base.name == "grep" else base.name
            yield name, tuple("" if figure is None else f"{100 * figure:.1f}" for figure in figures)
