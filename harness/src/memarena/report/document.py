"""Assembles a report from the scores of one run or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memarena.report.judge_summary import judge_sections
from memarena.report.layout import Document, Section
from memarena.report.paper.sections import published_sections
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
from memarena.report.tables.permission import behaviour_table, permission_table
from memarena.report.tables.retrieval import error_table, recall_by_family, retrieval_table
from memarena.report.tables.source_categories import source_table
from memarena.report.tables.uncertainty import bucket_table, interval_tables, variance_table
from memarena.scoring.results import RunScores


def report_document(
    runs: Sequence[ReportInput], *, published: bool = False, calibrations: Sequence[Calibration] = ()
) -> Document:
    """The whole report: what was run, the grid, and everything behind it. Empty sections are left out.

    Runs that cannot be compared (another data set, protocol or other questions) never share a table: each group has
    tables of its own.
    """
    parts = [*summary_sections(runs)]
    for group in report_groups(runs, published=published):
        parts += group.sections
    return Document("MemArena", (*parts, *method_sections(runs, calibrations)))


def method_sections(runs: Sequence[ReportInput], calibrations: Sequence[Calibration] = ()) -> list[Section]:
    """How the figures were made: the judge, its error rates, and the provenance of the runs."""
    scores = [run.scores for run in runs]
    return [
        *judge_sections(scores),
        *calibration_sections(calibrations, scores),
        *provenance_sections([r.provenance for r in runs if r.provenance]),
    ]


def summary_sections(runs: Sequence[ReportInput]) -> list[Section]:
    """What was run, and what keeps the runs from being compared."""
    heads = [summary_section(n, run.scores, several=len(runs) > 1) for n, run in enumerate(runs, 1)]
    warnings = comparison_warnings([run.scores for run in runs])
    return [*heads, *([Section("Between the runs", notes=tuple(warnings))] if warnings else [])]


@dataclass(frozen=True)
class Group:
    """Runs that can be compared: their rows, and the tables over them."""

    name: str
    """Which runs, where there are several groups; empty for the only one."""
    rows: tuple[ReportRow, ...]
    plain_sections: tuple[Section, ...]
    """Titled without the name of the group."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """Titled to distinguish them from those of other groups."""
        if not self.name:
            return self.plain_sections
        return tuple(replace(part, title=f"{part.title}, {self.name}") for part in self.plain_sections)


def report_groups(runs: Sequence[ReportInput], *, published: bool = False) -> list[Group]:
    """Tables of each group of comparable runs, with the published cells where asked for."""
    scores = [run.scores for run in runs]
    places = comparable_groups(scores)
    rows = rows_of(runs)
    found = []
    for members in places:
        numbers = [place + 1 for place in members]
        name = "" if len(places) == 1 else f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        own = [row for row in rows if row.run in numbers]
        parts = _sections(own, [scores[place] for place in members])
        if published:
            started_from = [p.configuration.name for m in members if (p := runs[m].provenance) and p.configuration]
            parts += published_sections(own, [scores[place] for place in members], started_from)
        found.append(Group(name, tuple(own), tuple(parts)))
    return found


def _sections(rows: Sequence[ReportRow], runs: Sequence[RunScores]) -> list[Section]:
    parts: list[Section | None] = [
        main_grid(rows),
        *interval_tables(rows),
        variance_table(rows),
        dimension_table(rows),
        family_table(rows),
        source_table(rows),
        judge_error_table(rows),
        permission_table(rows),
        behaviour_table(rows),
        bucket_table(rows),
        failure_table(rows),
        non_answer_table(rows),
        retrieval_table(rows),
        error_table(rows),
        recall_by_family(rows),
        latency_table(rows),
        efficiency_table(rows),
        history_table(rows),
        stopwatch_table(rows),
        ingest_table(rows),
        kept_table(rows),
        deletion_table(rows),
        energy_table(rows),
        footprint_table(rows),
        *breakdown_tables(rows),
        corrected_table(rows),
        token_f1_table(rows),
        baseline_table(runs),
    ]
    return [part for part in parts if part is not None and _says_something(part)]


def _says_something(part: Section) -> bool:
    """Whether a table has a figure anywhere; one whose every figure is n/a is left out."""
    return part.table is None or any(column.align == "right" for column in part.table.columns) or part.key in _ALWAYS


_ALWAYS = frozenset({"main-grid", "where-the-protocols-differ"})
"""Tables that are kept even where they hold no figure."""


def score_document(run: RunScores) -> Document:
    """The dimension scores of a run."""
    rows = rows_of([ReportInput(run)])
    parts = [summary_section(1, run, several=False), main_grid(rows), dimension_table(rows), permission_table(rows)]
    return Document("MemArena scores", tuple(part for part in parts if part is not None))
