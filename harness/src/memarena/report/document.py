"""Assembles the full report of one run or several from the tables of each group of comparable runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memarena.report.judge_summary import judge_sections
from memarena.report.layout import ChapterName, Document, Section
from memarena.report.paper.sections import DIFFERENCES, published_sections
from memarena.report.provenance import provenance_sections
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, comparable_groups, rows_of
from memarena.report.summary import comparison_warnings, summary_section
from memarena.report.tables.calibration import Calibration, calibration_sections
from memarena.report.tables.costs import efficiency_table, history_table
from memarena.report.tables.deletion import deletion_table
from memarena.report.tables.energy import energy_table, footprint_table
from memarena.report.tables.failures import failure_table
from memarena.report.tables.grid import (
    SLICES,
    baseline_table,
    breakdown_tables,
    corrected_table,
    dimension_table,
    family_table,
    main_grid,
    token_f1_table,
)
from memarena.report.tables.ingest import ingest_table
from memarena.report.tables.judge_error import judge_error_table
from memarena.report.tables.kept import kept_table
from memarena.report.tables.latency import latency_table, stopwatch_table
from memarena.report.tables.non_answers import non_answer_table
from memarena.report.tables.people import people_section
from memarena.report.tables.permission import behaviour_table, permission_table
from memarena.report.tables.refusals import pooled_table, refusal_table
from memarena.report.tables.retrieval import answerable_by_family, error_table, recall_by_family, retrieval_table
from memarena.report.tables.reviews import reviews_table
from memarena.report.tables.source_categories import source_table
from memarena.report.tables.uncertainty import bucket_table, dimension_interval_table, interval_table, variance_table
from memarena.scoring.results import RunScores


def report_document(
    runs: Sequence[ReportInput], *, published: bool = False, calibrations: Sequence[Calibration] = ()
) -> Document:
    """Return the full report, without empty sections.

    Runs that cannot be compared (another data set, protocol or other questions) never share a table: each group of
    comparable runs has its own tables. ``published``: also compare with the figures of the paper.
    """
    parts = [*summary_sections(runs)]
    for group in report_groups(runs, published=published):
        parts += group.sections
    return Document("MemArena", (*parts, *method_sections(runs, calibrations)))


def method_sections(runs: Sequence[ReportInput], calibrations: Sequence[Calibration] = ()) -> list[Section]:
    """Return the sections on methods: the judge, its error rates and agreement with people, provenance of the runs."""
    scores = [run.scores for run in runs]
    return [
        *judge_sections(scores),
        *calibration_sections(calibrations, scores),
        *people_section([sample for run in runs for sample in run.people]),
        *provenance_sections([r.provenance for r in runs if r.provenance]),
    ]


def summary_sections(runs: Sequence[ReportInput]) -> list[Section]:
    """Return a section describing each run, and the reasons why runs cannot be compared."""
    heads = [summary_section(n, run.scores, several=len(runs) > 1) for n, run in enumerate(runs, 1)]
    warnings = comparison_warnings([run.scores for run in runs])
    return [*heads, *([Section("Between the runs", notes=tuple(warnings))] if warnings else [])]


@dataclass(frozen=True)
class Group:
    """A group of comparable runs: their rows and tables."""

    name: str
    """Its runs, such as ``runs 1, 3``; empty if there is only one group."""
    rows: tuple[ReportRow, ...]
    sections: tuple[Section, ...]
    """Titles contain the group's name if there are several groups."""


def report_groups(runs: Sequence[ReportInput], *, published: bool = False) -> list[Group]:
    """Return the rows and tables of each group of comparable runs; ``published``: with the figures of the paper."""
    scores = [run.scores for run in runs]
    positions = comparable_groups(scores)
    rows = rows_of(runs)
    groups = []
    for members in positions:
        numbers = [position + 1 for position in members]
        name = "" if len(positions) == 1 else f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        group_rows = [row for row in rows if row.run in numbers]
        group_scores = [scores[position] for position in members]
        parts = _sections(group_rows, group_scores)
        if published:
            started_from = [p.configuration.name for m in members if (p := runs[m].provenance) and p.configuration]
            parts += [
                replace(p, chapter="published") for p in published_sections(group_rows, group_scores, started_from)
            ]
        titled_parts = [replace(part, title=f"{part.title}, {name}", group=name) if name else part for part in parts]
        groups.append(Group(name, tuple(group_rows), tuple(titled_parts)))
    return groups


_TABLES: tuple[tuple[ChapterName, str, Callable[[Sequence[ReportRow]], Section | None]], ...] = (
    ("scores", "main-grid", main_grid),
    ("scores", "95-intervals", interval_table),
    ("scores", "95-intervals-of-the-dimensions", dimension_interval_table),
    ("breakdowns", "where-the-spread-comes-from", variance_table),
    ("scores", "dimensions", dimension_table),
    ("scores", "families", family_table),
    ("scores", "source-categories", source_table),
    ("scores", "judge-error", judge_error_table),
    ("scores", "reviews-of-answers", reviews_table),
    ("permission", "permission-d6", permission_table),
    ("permission", "behaviour-on-deny-items", behaviour_table),
    ("permission", "reasons-facts-were-withheld", bucket_table),
    ("permission", "refusals-by-list", refusal_table),
    ("permission", "d6-pooled-over-readers", pooled_table),
    ("retrieval", "failed-questions", failure_table),
    ("", "answers-that-say-nothing", non_answer_table),
    ("retrieval", "answerable-by-family", answerable_by_family),
    ("retrieval", "retrieval", retrieval_table),
    ("retrieval", "where-wrong-answers-went-wrong", error_table),
    ("retrieval", "evidence-recall-at-10-by-family", recall_by_family),
    ("time", "latency-at-concurrency-1-ms", latency_table),
    ("time", "efficiency-of-one-answer", efficiency_table),
    ("time", "search-against-length-of-history", history_table),
    ("time", "ttft-and-the-server-s-own-prompt-time", stopwatch_table),
    ("time", "ingest", ingest_table),
    ("", "what-the-memory-kept", kept_table),
    ("", "deletion-apart-from-every-score", deletion_table),
    ("time", "energy", energy_table),
    ("time", "memory-and-disk-of-backends", footprint_table),
)
"""Tables of a group in their order: chapter of the HTML report, key, function that makes the table.

A key is the name that ``--table`` and links use, so it stays the same if the title of a table changes."""
_ABOVE_CHANCE, _TOKEN_F1, _BASELINES = "above-chance", "token-f1-of-open-answers", "baselines"


def table_keys() -> tuple[str, ...]:
    """Return the keys of all tables that a report may have, as ``--table`` takes them."""
    keys = (key for _, key, _ in _TABLES)
    return (*keys, *(key for key, _ in SLICES.values()), _ABOVE_CHANCE, _TOKEN_F1, _BASELINES)


def _sections(rows: Sequence[ReportRow], runs: Sequence[RunScores]) -> list[Section]:
    tables: list[tuple[ChapterName, str, Section | None]] = [
        *((chapter, key, make(rows)) for chapter, key, make in _TABLES),
        *(("breakdowns", part.key, part) for part in breakdown_tables(rows)),
        ("chance", _ABOVE_CHANCE, corrected_table(rows)),
        ("scores", _TOKEN_F1, token_f1_table(rows)),
        ("chance", _BASELINES, baseline_table(runs)),
    ]
    parts = [replace(part, chapter=chapter, key=key) for chapter, key, part in tables if part is not None]
    return [part for part in parts if _has_content(part)]


def _has_content(part: Section) -> bool:
    """Whether a section is to be shown: a table with at least one figure, no table at all, or one of ``_ALWAYS``."""
    return part.table is None or any(column.align == "right" for column in part.table.columns) or part.key in _ALWAYS


_ALWAYS = frozenset({"main-grid", DIFFERENCES})
"""Keys of tables that are shown even without a figure."""


def score_document(run: RunScores) -> Document:
    """Return a short report of one run: summary, grid, dimensions and permission."""
    rows = rows_of([ReportInput(run)])
    parts = [summary_section(1, run, several=False), main_grid(rows), dimension_table(rows), permission_table(rows)]
    return Document("MemArena scores", tuple(part for part in parts if part is not None))
