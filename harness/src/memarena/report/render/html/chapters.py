"""The layout of the page: chapters of figures and tables, then question traces and methods."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena.report.brief import brief_groups, brief_table, words_section
from memarena.report.brief_rows import BriefRow
from memarena.report.charts.bars import error_split, ranked_right, recall_bars
from memarena.report.charts.catalogue import charts_of
from memarena.report.charts.svg import Figure
from memarena.report.document import Group, method_sections, report_groups, summary_sections
from memarena.report.findings import findings, split_verdicts, texts, unproven
from memarena.report.layout import Section
from memarena.report.parts import section_without_small
from memarena.report.question_view.records import QuestionView
from memarena.report.render.html.cells import TableView, table_view
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, backend_name, reader_name
from memarena.report.tables.calibration import Calibration

OPEN_LEGENDS = frozenset({"Main grid"})
"""Sections whose legend is open from the start."""


@dataclass(frozen=True)
class Part:
    """One table with its notes, or lines where there is no table."""

    key: str
    title: str
    lines: tuple[tuple[str, str], ...]
    """Name and text; the name is empty where a line has none."""
    table: TableView | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    legend: tuple[tuple[str, str], ...]
    legend_open: bool
    trace: str
    trace_columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Chapter:
    """A titled chapter: what it answers, figures, tables."""

    key: str
    title: str
    lead: str
    figures: tuple[Figure, ...]
    parts: tuple[Part, ...]
    figures_second: bool
    """Whether the first table is above the figures."""


@dataclass(frozen=True)
class TraceGroup:
    """The question traces of a row."""

    tag: str
    name: str
    traces: tuple[QuestionView, ...]
    failed: int
    """How many of the row's questions were wrong or failed, shown or not."""


@dataclass(frozen=True)
class SummaryView:
    """What the page opens with, for one group of comparable runs."""

    key: str
    title: str
    verdicts: tuple[str, ...]
    """Who answers most, as far as the intervals carry it."""
    findings: tuple[str, ...]
    unproven: tuple[str, ...]
    table: Part
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Page:
    """Everything that the template needs."""

    title: str
    datasets: str
    summaries: tuple[SummaryView, ...]
    words: tuple[tuple[str, str], ...]
    """Terms of the summary and what they mean."""
    heads: tuple[Part, ...]
    chapters: tuple[Chapter, ...]
    traces: tuple[TraceGroup, ...]
    methods: tuple[Part, ...]


_CHAPTERS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "scores",
        "Scores",
        "Who answers best, and with what uncertainty.",
        (
            "Main grid",
            "95% intervals",
            "Dimensions",
            "95% intervals of the dimensions",
            "Families",
            "Source categories",
            "Judge error",
            "Token-F1 of open answers",
        ),
    ),
    (
        "permission",
        "Permission",
        "Whether facts are withheld from those who may not know them, and disclosed to those who may.",
        ("Permission (D6)", "Behaviour on DENY items", "Reasons facts were withheld"),
    ),
    (
        "retrieval",
        "Retrieval and errors",
        "What the memory retrieved, and where wrong answers went wrong.",
        ("Retrieval", "Where wrong answers went wrong", "Evidence recall at 10 by family", "Failed questions"),
    ),
    (
        "time",
        "Time and cost",
        "What a user waits for, and what keeping the memory costs.",
        (
            "Latency at concurrency 1, ms",
            "Efficiency of one answer",
            "Search against length of history",
            "TTFT beside the server's own prompt time",
            "Ingest",
            "Energy",
            "Memory and disk of backends",
        ),
    ),
    (
        "breakdowns",
        "Breakdowns",
        "The same answers, broken down by what makes questions hard.",
        (
            "By days between evidence and question",
            "Figures by days between evidence and question",
            "By number of interfering facts",
            "Figures by number of interfering facts",
            "By difficulty",
            "Figures by difficulty",
            "By context tier",
            "Figures by context tier",
            "Where the spread comes from",
        ),
    ),
    (
        "chance",
        "Chance",
        "Scores achievable without memory.",
        ("Above chance", "Baselines"),
    ),
    (
        "published",
        "Beside the published figures",
        "The paper's figures next to ours. Read what differs before comparing them.",
        (),
    ),
)
_PUBLISHED = ("Beside the published figures", "Published", "Other published tables", "Where the protocols differ")
"""How titles of the published chapter begin: which tables it has depends on the run."""
_REST = ("more", "More", "")


def page_of(
    runs: Sequence[ReportInput],
    *,
    published: bool = False,
    calibrations: Sequence[Calibration] = (),
    least_questions: int = 0,
) -> Page:
    """The page of one run or several."""
    groups = report_groups(runs, published=published)
    rows = [row for group in groups for row in group.rows]
    methods = method_sections(runs, calibrations)
    return Page(
        title=_title(runs),
        datasets=", ".join(dict.fromkeys(run.scores.dataset.name for run in runs)),
        summaries=tuple(_summary(n, name, rows, least_questions) for n, (name, rows) in enumerate(brief_groups(runs))),
        words=words_section().named_lines,
        heads=tuple(_part(section) for section in summary_sections(runs)),
        chapters=tuple(chapter for group in groups for chapter in _chapters(group, runs, least_questions)),
        traces=tuple(_traces(rows, runs)),
        methods=tuple(_part(section) for section in methods),
    )


def _summary(place: int, name: str, rows: Sequence[BriefRow], least: int) -> SummaryView:
    """Verdict, table, pictures and findings of a group; ids are told apart by its place."""
    ending = f"-{place}" if place else ""
    verdicts, others = split_verdicts(findings(rows))
    part = _part(brief_table(rows, f"Summary{name}", least=least))
    drawn = (
        ranked_right(rows, f"fig-ranked{ending}"),
        recall_bars(rows, f"fig-evidence{ending}"),
        error_split(rows, f"fig-errors{ending}"),
    )
    return SummaryView(
        key=part.key,
        title=part.title,
        verdicts=texts(verdicts),
        findings=texts(others),
        unproven=texts(unproven(rows)),
        table=part,
        figures=tuple(figure for figure in drawn if figure is not None),
    )


def _title(runs: Sequence[ReportInput]) -> str:
    names = dict.fromkeys(run.scores.dataset.name for run in runs)
    return f"MemArena: {', '.join(names)}"


def _chapters(group: Group, runs: Sequence[ReportInput], least_questions: int) -> list[Chapter]:
    suffix = f", {group.name}" if group.name else ""
    ending = "-" + re.sub(r"[^a-z0-9]+", "-", group.name) if group.name else ""
    sections = {
        plain.title: shown
        for plain, named in zip(group.plain_sections, group.sections, strict=True)
        if (shown := section_without_small(named, least_questions)) is not None
    }
    figures = _figures(group.rows, runs, ending)
    published = tuple(title for title in sections if title.startswith(_PUBLISHED))
    placed = {*published, *(title for *_, titles in _CHAPTERS for title in titles)}
    rest = tuple(title for title in sections if title not in placed)
    found = []
    for key, title, lead, titles in (*_CHAPTERS, (*_REST, rest)):
        own = [sections[t] for t in (published if key == "published" else titles) if t in sections]
        if own:
            parts = tuple(_part(section) for section in own)
            name = f"chapter-{key}{ending}"
            found.append(Chapter(name, f"{title}{suffix}", lead, figures.get(key, ()), parts, key == "scores"))
    return found


def _figures(rows: Sequence[ReportRow], runs: Sequence[ReportInput], ending: str) -> Mapping[str, tuple[Figure, ...]]:
    """Charts by the chapter that they open; what grows with the life is a matter of time."""
    found: dict[str, tuple[Figure, ...]] = {}
    for chart in charts_of(rows, runs, ending):
        chapter = "time" if chart.chapter == "growth" else chart.chapter
        found[chapter] = (*found.get(chapter, ()), chart.figure)
    return found


def _part(section: Section) -> Part:
    return Part(
        key=section.key,
        title=section.title,
        lines=section.named_lines,
        table=table_view(section.table) if section.table else None,
        notes=section.notes if section.table else (),
        warnings=() if section.table else section.notes,
        legend=section.legend,
        legend_open=section.title.split(",")[0] in OPEN_LEGENDS,
        trace=section.trace,
        trace_columns=section.trace_columns,
    )


def _traces(rows: Sequence[ReportRow], runs: Sequence[ReportInput]) -> list[TraceGroup]:
    found = []
    for row in rows:
        cells = {cell.cell_id for cell in row.scores.cells}
        own = [trace for trace in runs[row.run - 1].traces if trace.answers[0].cell_id in cells]
        counts = row.scores.counts
        name = f"{backend_name(rows, row)} · {reader_name(row)}"
        if len({r.run for r in rows}) > 1:
            name += f", run {row.run}"
        if own:
            failed = counts.asked - counts.correct
            found.append(TraceGroup(row.tag, name, tuple(own), failed))
    return found
