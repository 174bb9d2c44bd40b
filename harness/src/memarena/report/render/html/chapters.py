"""Lays out the HTML report: chapters of figures and tables, then question traces and methods.

The template (``templates/page.html.jinja``) only prints the :class:`Page` that is built here.
"""

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
from memarena.report.layout import ChapterName, Section
from memarena.report.parts import section_without_small
from memarena.report.question_view.records import QuestionView
from memarena.report.render.html.cells import TableView, table_view
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, backend_name, reader_name
from memarena.report.tables.calibration import Calibration

OPEN_LEGENDS = frozenset({"main-grid"})
"""Keys of sections whose legend is expanded initially."""


@dataclass(frozen=True)
class Part:
    """A section for the template: a table with its notes, or lines."""

    key: str
    title: str
    lines: tuple[tuple[str, str], ...]
    """(name, text); the name is empty for a line without one."""
    table: TableView | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    legend: tuple[tuple[str, str], ...]
    legend_open: bool
    trace: str
    trace_columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Chapter:
    """A titled chapter with its lead sentence, figures and tables."""

    key: str
    title: str
    lead: str
    figures: tuple[Figure, ...]
    parts: tuple[Part, ...]
    figures_second: bool
    """Whether the figures follow the first table instead of preceding it."""


@dataclass(frozen=True)
class TraceGroup:
    """The question traces of a row."""

    tag: str
    name: str
    traces: tuple[QuestionView, ...]
    failed: int
    """Number of the row's questions that were wrong or failed, with or without a trace."""


@dataclass(frozen=True)
class SummaryView:
    """Summary of a group of comparable runs, at the head of the page."""

    key: str
    title: str
    verdicts: tuple[str, ...]
    """Sentences on which memory has most right answers."""
    findings: tuple[str, ...]
    unproven: tuple[str, ...]
    table: Part
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Page:
    """All that the template prints."""

    title: str
    datasets: str
    summaries: tuple[SummaryView, ...]
    words: tuple[tuple[str, str], ...]
    """(term of the summary, its meaning)."""
    heads: tuple[Part, ...]
    chapters: tuple[Chapter, ...]
    traces: tuple[TraceGroup, ...]
    methods: tuple[Part, ...]


_CHAPTERS: dict[ChapterName, tuple[str, str]] = {
    "scores": ("Scores", "Who answers best, and with what uncertainty."),
    "permission": (
        "Permission",
        "Whether facts are withheld from those who may not know them, and disclosed to those who may.",
    ),
    "retrieval": ("Retrieval and errors", "What the memory retrieved, and where wrong answers went wrong."),
    "time": ("Time and cost", "What a user waits for, and what keeping the memory costs."),
    "breakdowns": ("Breakdowns", "The same answers, broken down by what makes questions hard."),
    "chance": ("Chance", "Scores achievable without memory."),
    "published": (
        "Next to the published figures",
        "The paper's figures next to ours. Read what differs before comparing them.",
    ),
    "": ("More", ""),
}
"""By chapter of a section: title and lead sentence, in the order of the page."""


def page_of(
    runs: Sequence[ReportInput],
    *,
    published: bool = False,
    calibrations: Sequence[Calibration] = (),
    least_questions: int = 0,
) -> Page:
    """Build the page of one run or several; tables omit shares of fewer than ``least_questions`` questions."""
    groups = report_groups(runs, published=published)
    rows = [row for group in groups for row in group.rows]
    methods = method_sections(runs, calibrations)
    return Page(
        title=_title(runs),
        datasets=", ".join(dict.fromkeys(run.scores.dataset.name for run in runs)),
        summaries=tuple(_summary(n, name, rows, least_questions) for n, (name, rows) in enumerate(brief_groups(runs))),
        words=words_section().named_lines,
        heads=tuple(part_of(section) for section in summary_sections(runs)),
        chapters=tuple(chapter for group in groups for chapter in _chapters(group, runs, least_questions)),
        traces=tuple(_traces(rows, runs)),
        methods=tuple(part_of(section) for section in methods),
    )


def _summary(index: int, name: str, rows: Sequence[BriefRow], least: int) -> SummaryView:
    """Build the summary of a group; its index is appended to ids to make them unique."""
    ending = f"-{index}" if index else ""
    verdicts, other_findings = split_verdicts(findings(rows))
    part = part_of(brief_table(rows, f"Summary{name}", least=least))
    charts = (
        ranked_right(rows, f"fig-ranked{ending}"),
        recall_bars(rows, f"fig-evidence{ending}"),
        error_split(rows, f"fig-errors{ending}"),
    )
    return SummaryView(
        key=part.key,
        title=part.title,
        verdicts=texts(verdicts),
        findings=texts(other_findings),
        unproven=texts(unproven(rows)),
        table=part,
        figures=tuple(figure for figure in charts if figure is not None),
    )


def _title(runs: Sequence[ReportInput]) -> str:
    names = dict.fromkeys(run.scores.dataset.name for run in runs)
    return f"MemArena: {', '.join(names)}"


def _chapters(group: Group, runs: Sequence[ReportInput], least_questions: int) -> list[Chapter]:
    """Return the chapters of a group that have sections."""
    suffix = f", {group.name}" if group.name else ""
    ending = "-" + re.sub(r"[^a-z0-9]+", "-", group.name) if group.name else ""
    sections = [
        kept_part for part in group.sections if (kept_part := section_without_small(part, least_questions)) is not None
    ]
    figures = _figures(group.rows, runs, ending)
    chapters = []
    for key, (title, lead) in _CHAPTERS.items():
        parts = tuple(part_of(part) for part in sections if part.chapter == key)
        if parts:
            name = f"chapter-{key or 'more'}{ending}"
            chapters.append(Chapter(name, f"{title}{suffix}", lead, figures.get(key, ()), parts, key == "scores"))
    return chapters


def _figures(rows: Sequence[ReportRow], runs: Sequence[ReportInput], ending: str) -> Mapping[str, tuple[Figure, ...]]:
    """Return charts by chapter of the page; those of growth over days belong to the chapter of times."""
    by_chapter: dict[str, tuple[Figure, ...]] = {}
    for chart in charts_of(rows, runs, ending):
        chapter = "time" if chart.chapter == "growth" else chart.chapter
        by_chapter[chapter] = (*by_chapter.get(chapter, ()), chart.figure)
    return by_chapter


def part_of(section: Section) -> Part:
    """Convert a section for the template."""
    return Part(
        key=section.anchor,
        title=section.title,
        lines=section.named_lines,
        table=table_view(section.table) if section.table else None,
        notes=section.notes if section.table else (),
        warnings=() if section.table else section.notes,
        legend=section.legend,
        legend_open=section.key in OPEN_LEGENDS,
        trace=section.trace,
        trace_columns=section.trace_columns,
    )


def _traces(rows: Sequence[ReportRow], runs: Sequence[ReportInput]) -> list[TraceGroup]:
    groups = []
    for row in rows:
        cells = {cell.cell_id for cell in row.scores.cells}
        row_traces = [trace for trace in runs[row.run - 1].traces if trace.answers[0].cell_id in cells]
        counts = row.scores.counts
        name = f"{backend_name(rows, row)} · {reader_name(row)}"
        if len({r.run for r in rows}) > 1:
            name += f", run {row.run}"
        if row_traces:
            not_right = counts.asked - counts.correct
            groups.append(TraceGroup(row.tag, name, tuple(row_traces), not_right))
    return groups
