"""Builds the sections that compare runs with the paper: headlines, dimensions, other tables, protocol.

In names, "ours" are the rows of the reported runs and "theirs" those that the paper published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memarena.paper.published import load_published
from memarena.paper.published_types import Figure, GridCell, PrintedTable, Published
from memarena.report.figures import NA, metric, milliseconds, number, percent, whole
from memarena.report.layout import Cell, Column, Fact, Section, counted, section
from memarena.report.paper.comparison import PaperRows, comparison_sections, figure_cell
from memarena.report.rows import ReportRow, backend_name, reader_name
from memarena.scoring import formulas
from memarena.scoring.results import RunScores

PUBLISHED = "published"
DIFFERENCES = "where-the-protocols-differ"
"""Key of the table of differences in protocol, which is shown although it has no figures."""
BACKENDS = {"vanilla": "Vanilla", "bm25": "RAG", "memobase": "Memobase", "memsearch": "MemSearch", "oracle": "Oracle"}
"""By name of a backend, the paper's name of it."""
HEADLINES = ("Rec", "Rea", "Trust", "Avg")
DIMENSIONS = ("D1", "D2", "D3", "D4", "D5", "D6")


def published_sections(
    rows: Sequence[ReportRow], runs: Sequence[RunScores], configurations: Iterable[str] = ()
) -> list[Section]:
    """Return rows of the runs next to the paper's for the same backends, its other tables, and differences in protocol.

    ``configurations``: names of the runs' configurations; the paper's tables of these ablations are included.
    """
    published = load_published()
    paper_rows = PaperRows(rows, runs, tuple((row, BACKENDS[row.scores.backend]) for row in rows if _has_cell(row)))
    if not paper_rows.pairs:
        names = ", ".join(BACKENDS)
        line = f"the paper has no figures for these backends; it has them for: {names}"
        grid = [Section("Next to the published figures", (line,))]
    else:
        grid = [
            _headlines(paper_rows, published),
            _dimensions(paper_rows, published),
            *comparison_sections(paper_rows, published),
        ]
    return [*grid, *reference_sections(rows, published, frozenset(configurations)), differences(runs)]


def _has_cell(row: ReportRow) -> bool:
    return row.scores.backend in BACKENDS


def _headlines(paper_rows: PaperRows, published: Published) -> Section:
    theirs = [(c.backend, c.reader, _their_headlines(c)) for c in published.grid]
    notes = [
        "paper: the published main grid, over another data set on other hardware; read the differences below first",
        "where the paper has no figure for our reader, its figures for all its readers are shown",
        "the paper's Vanilla: accuracy at a budget of 8,192 tokens, TTFT at 512",
    ]
    times = [
        Column(
            "S+TTFT", "end to end, p50, ms; ≈ and slanted: the paper composed it from a fit instead of measuring it"
        ),
        Column("Search+floor", "as measured, p50, ms"),
    ]
    columns = [*(Column(name) for name in HEADLINES), *times]
    return paper_rows.section("Next to the published figures", columns, _our_headlines, theirs, notes)


def _dimensions(paper_rows: PaperRows, published: Published) -> Section:
    theirs = [(c.backend, c.reader, _their_dimensions(c)) for c in published.grid]
    last = Column("D6", "F1_PU; the paper's follows from its grid as 2 Trust - D5, within 0.15 by rounding")
    columns = [*(Column(name) for name in DIMENSIONS[:-1]), last]
    return paper_rows.section("Next to the published figures: dimensions", columns, _our_dimensions, theirs)


def _our_headlines(row: ReportRow) -> list[Cell]:
    latency = row.scores.latency
    ttft = latency.end_to_end.p50 if latency is not None and row.scores.real_reader else None
    search = latency.search.p50 if latency is not None else None
    return [*(metric(row.scores, name) for name in HEADLINES), milliseconds(ttft), milliseconds(search)]


def _our_dimensions(row: ReportRow) -> list[Cell]:
    return [metric(row.scores, name) for name in DIMENSIONS]


def _their_headlines(cell: GridCell) -> list[Cell]:
    figures = [figure_cell(figure) for figure in (cell.rec, cell.rea, cell.trust, cell.avg)]
    return [*figures, _their_ttft(cell.ttft_ms), whole(round(cell.search_ms))]


def _their_ttft(ttft: Figure | None) -> Cell:
    if ttft is None:
        return NA
    return Cell(f"≈{ttft.value:,.0f}", slanted=True) if ttft.predicted else whole(round(ttft.value))


def _their_dimensions(cell: GridCell) -> list[Cell]:
    figures = [figure_cell(figure) for figure in (cell.d1, cell.d2, cell.d3, cell.d4, cell.d5)]
    return [*figures, Cell(f"{cell.f1_pu:.1f}")]


# ------------------------------------------------------------------ differences


def differences(runs: Sequence[RunScores]) -> Section:
    """Return the table of differences between the paper's protocol and the runs'; reasons: ``docs/methodology.md``."""
    rows = [
        [Cell(setting), Cell(paper), Cell("; ".join(dict.fromkeys(ours)))]
        for setting, paper, ours in _differences(runs)
    ]
    columns = [Column("what", align="left"), Column("paper", align="left"), Column("here", align="left")]
    return section(
        "Where the protocols differ", columns, rows, ["docs/methodology.md gives the reasons"], key=DIFFERENCES
    )


def _differences(runs: Sequence[RunScores]) -> Iterable[tuple[str, str, list[str]]]:
    """Yield (setting, the paper's value, the runs' values)."""
    budgets = [
        f"{row.reading.max_context_tokens:,} context tokens, {row.reading.max_answer_tokens:,} answer tokens"
        for run in runs
        for row in run.rows
    ]
    yield (
        "data set",
        "50 egos, 15 days, 1,579 questions",
        [_size(run) for run in runs],
    )
    yield ("budgets", "window 16,384 tokens, 400 answer tokens; Vanilla 8,192 for accuracy, 512 for time", budgets)
    yield ("judge", "gpt-4o-mini-2024-07-18; D1 by exact match", [_judge(run) for run in runs])
    yield ("seeds", "mean over three seeds at T = 0.3", [_seeds(run) for run in runs])
    yield (
        "when it is asked",
        "once the whole history has been ingested",
        [run.protocol.replace("_", " ") for run in runs],
    )
    yield (
        "hints to the reader",
        "by dimension, in the prompt",
        ["none: no prompt depends on gold or family"],
    )
    yield (
        "failures",
        "not described",
        ["the backend's count as wrong and are listed; infrastructure failures never count, and block the headline"],
    )
    yield (
        "D6",
        "flag for privacy, label for utility; F1_PU of the answers of three seeds pooled",
        ["flag or label on both sides; F1_PU per seed, then averaged; next to it J and the paper's form"],
    )
    yield (
        "machines",
        "accuracy from an NVIDIA H200 server, times from an NVIDIA GB10",
        ["answers and times of the same calls on the machine of the run"],
    )
    yield (
        "time of Search",
        "median on an NVIDIA GB10 at concurrency 1",
        ["median on the machine of the run at concurrency 1, never retried; the floor is printed, not subtracted"],
    )


def _size(run: RunScores) -> str:
    data = run.dataset
    size = f"{counted(data.ego_count, 'ego')}, {counted(data.day_count, 'day')}"
    return f"{data.name}: {size}, {counted(sum(run.planned.values()), 'question')}"


def _judge(run: RunScores) -> str:
    decided = run.judging.decided
    if run.judging.models:
        names = ", ".join(dict.fromkeys(m.model for m in run.judging.models))
        handed_over = (
            f", {run.judging.handed_over:,} verdicts decided by the rules instead" if run.judging.handed_over else ""
        )
        return f"{run.judge} ({names}{handed_over})"
    if run.typed_share is None or not decided:
        return run.judge
    return f"{run.judge}, {100 * (1 - run.typed_share):.0f}% of verdicts on golds in text"


def _seeds(run: RunScores) -> str:
    return ", ".join(dict.fromkeys(seed for row in run.rows for seed in row.headline_seeds))


ALWAYS = ("judge-human",)
"""Names of published tables that are always shown."""


def reference_sections(
    rows: Sequence[ReportRow], published: Published, configurations: frozenset[str]
) -> list[Section]:
    """Return published tables: variations of D6 with the runs' rows, the runs' ablations, agreement of the judge."""
    always = [t for t in published.printed if t.name in ALWAYS or configurations & set(t.configurations)]
    on_demand = [t for t in published.printed if t not in always and t.configurations]
    last = [Section("Other published tables", tuple(_where(t) for t in on_demand))] if on_demand else []
    return [_levers(rows, published), *(_printed(table) for table in always), *last]


def _levers(rows: Sequence[ReportRow], published: Published) -> Section:
    """Return the permission figures of the runs' rows, followed by the paper's sixteen variations."""
    body: list[list[Cell]] = []
    for row in rows:
        if row.scores.permission is not None:
            names = [Cell("ours"), Cell(backend_name(rows, row)), Cell(reader_name(row))]
            body.append([*names, *(metric(row.scores, name) for name in ("U", "P", "D6", "J"))])
    rules = [len(body)] if body else []
    for lever in published.sweep:
        utility, privacy = lever.allow_disclosed / 100, 1 - lever.deny_leaked / 100
        j = formulas.youden_j(privacy, utility)
        shares = [percent(utility), percent(privacy), number(lever.f1_pu), percent(j)]
        body.append([Cell("paper"), Cell(lever.lever), Cell(lever.variant), *shares])
    columns = [
        Column("whose", align="left"),
        Column("lever", "ours: the backend", align="left"),
        Column("variant", "ours: the reader", align="left"),
        Column("U", "disclosed on ALLOW items, percent"),
        Column("P", "withheld on DENY items"),
        Column("F1_PU", "harmonic mean of both"),
        Column("J", "U + P - 1: 0 = ignores the asker"),
    ]
    return section(
        "Published variations of permission", columns, body, ["from the paper's d6-ablation-sweep"], breaks=rules
    )


def _printed(table: PrintedTable) -> Section:
    columns = [*(Column(name, align="left") for name in table.labels), *(Column(name) for name in table.columns)]
    body = [
        [*(Cell(label) for label in row.labels), *(_as_printed(figure) for figure in row.figures)] for row in table.rows
    ]
    notes = [f"the paper's {table.name}", *([table.note] if table.note else [])]
    return section(f"Published: {table.title}", columns, body, notes)


def _as_printed(figure: Figure | None) -> Cell:
    if figure is None:
        return NA
    spread = f" ±{figure.sd:g}" if figure.sd is not None else ""
    ends = f" [{figure.low:,.9g}, {figure.high:,.9g}]" if figure.low is not None and figure.high is not None else ""
    after = spread + ends
    return Cell(f"{figure.value:,.9g}{after}", spread=after if spread else "")


def _where(table: PrintedTable) -> Fact:
    return Fact(table.title, f"in reports of memarena run {' or '.join(table.configurations)}", width=0)
