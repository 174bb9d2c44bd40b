"""Names, orders and marks the rows of a report's tables: a backend with a reader, of one or several runs.

A *mark* is a sign at a row's name, such as ◇, for what to know before reading its figures; :func:`marks` explains those
that a table uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memarena.log.records import NON_ANSWERS
from memarena.report.layout import Cell, Column
from memarena.report.report_input import ReportInput
from memarena.report.reviews import RowReviews
from memarena.scoring.costs import RowCosts
from memarena.scoring.figures import Permission
from memarena.scoring.results import MANY_FAILED, MANY_NON_ANSWERS, RowScores, RunScores

NO_EVIDENCE = "∅ answers from the questions' evidence alone, and this data set names none: n/a, and no upper bound"


@dataclass(frozen=True)
class ReportRow:
    """A row of scores with the number of its run (from 1), and ``tag``, the letters that name it in charts."""

    run: int
    scores: RowScores
    tag: str = ""
    costs: RowCosts | None = None
    reviews: RowReviews | None = None


def rows_of(runs: Sequence[ReportInput]) -> list[ReportRow]:
    """Return all rows, run by run: competitors, then rows without the reader, then diagnostics, each by reader."""
    result: list[ReportRow] = []
    for run_number, run in enumerate(runs, 1):
        costs = {cost.label: cost for cost in run.costs}
        reviews = {review.label: review for review in run.reviews}
        readers = list(dict.fromkeys(row.reader for row in run.scores.rows))
        for row in sorted(run.scores.rows, key=lambda r: (r.diagnostic, r.without_reader, readers.index(r.reader))):
            tag = _letters(len(result))
            result.append(ReportRow(run_number, row, tag, costs.get(row.label), reviews.get(row.label)))
    return result


def _letters(index: int) -> str:
    """Return the letters of an index: A, B, … Z, AA, AB, …"""
    head, tail = divmod(index, 26)
    return (_letters(head - 1) if head else "") + chr(ord("A") + tail)


def comparable_groups(runs: Sequence[RunScores]) -> list[list[int]]:
    """Return the indices of runs by group: runs with the same data set, protocol, questions and D6 rules in prompts."""
    groups: dict[object, list[int]] = {}
    for index, run in enumerate(runs):
        families = tuple(sorted(run.families.items()))
        key = (run.dataset.sha256, run.protocol, run.question_filter, families, run.d6_rules)
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def lead_columns(rows: Sequence[ReportRow]) -> list[Column]:
    """Return the columns that name a row: its run if there are several, backend, reader."""
    several = len({row.run for row in rows}) > 1
    run = [Column("run", align="left")] if several else []
    return [*run, Column("backend", align="left"), Column("reader", align="left")]


def lead_cells(rows: Sequence[ReportRow], row: ReportRow, *, of_times: bool = False) -> list[Cell]:
    """Return the cells that name a row. ``of_times``: as for :func:`backend_name`."""
    several = len({r.run for r in rows}) > 1
    run = [Cell(str(row.run))] if several else []
    return [*run, Cell(backend_name(rows, row, of_times=of_times)), Cell(reader_name(row))]


def busy_sign(row: RowScores) -> str:
    """Return the sign of times measured while other processes used the CPUs; empty if none did."""
    return " ◷" if "busy_machine" in row.marks else ""


def backend_name(rows: Sequence[ReportRow], row: ReportRow, *, of_times: bool = False) -> str:
    """Return the backend with its marks, and its options if another row of its run has the same backend and reader.

    ``of_times``: also the mark of a busy machine, for tables that show times.
    """
    scores = row.scores
    same_backend = {
        r.scores.label
        for r in rows
        if r.run == row.run and r.scores.backend == scores.backend and r.scores.reader == scores.reader
    }
    options = ",".join(f"{k}={v}" for k, v in scores.options.items()) if len(same_backend) > 1 else ""
    return (
        scores.backend
        + (f" [{options}]" if options else "")
        + (" ◇" if scores.diagnostic else "")
        + (" ‡" if scores.own_model else "")
        + (" §" if scores.without_reader else "")
        + (" ¶" if "many_failed" in scores.marks else "")
        + (" ※" if "unsupported_sources" in scores.marks else "")
        + (" ∅" if "no_evidence" in scores.marks else "")
        + (" ◌" if "many_non_answers" in scores.marks else "")
        + (" ⊗" if "not_isolated" in scores.marks else "")
        + (busy_sign(scores) if of_times else "")
    )


def reader_name(row: ReportRow) -> str:
    """Return the reader's name, followed by ``†`` if it is not a language model."""
    return row.scores.reader if row.scores.real_reader else f"{row.scores.reader} †"


def row_name(rows: Sequence[ReportRow], row: ReportRow, *, of_times: bool = False) -> str:
    """Return backend and reader as one name, and the run if there are several; ``of_times`` as :func:`backend_name`."""
    several = len({r.run for r in rows}) > 1
    return f"{backend_name(rows, row, of_times=of_times)} · {reader_name(row)}" + (
        f" (run {row.run})" if several else ""
    )


def breaks(rows: Sequence[ReportRow]) -> list[int]:
    """Return the indices of rows with a rule above: the first of another run, of another reader, of the diagnostics."""

    def group(row: ReportRow) -> tuple[int, bool, bool, str]:
        own = row.scores
        return row.run, own.diagnostic, own.without_reader, "" if own.diagnostic else own.reader

    return [index for index in range(1, len(rows)) if group(rows[index]) != group(rows[index - 1])]


def trace(rows: Sequence[ReportRow], filters: str = "") -> str:
    """Return the command that lists the answers behind a row, for the first row with answers; empty if none has any."""
    rows_with_answers = [row for row in rows if row.scores.counts.asked]
    if not rows_with_answers:
        return ""
    first = rows_with_answers[0].scores.label
    return f"memarena show RUN --answers --cell {first}" + (f" {filters}" if filters else "")


def trace_slice(rows: Sequence[ReportRow], by: str) -> str:
    """Return :func:`trace` narrowed to a value of the breakdown ``by`` that has answers; empty if no row has any."""
    return next(
        (
            trace([row], f"--{by} {part.key.replace('–', '-')}")
            for row in rows
            for part in row.scores.slices
            if part.by == by and part.counts.asked
        ),
        "",
    )


def trace_deny(rows: Sequence[ReportRow], *, kept: bool = False) -> str:
    """Return :func:`trace` narrowed to DENY items (``kept``: whose fact was withheld); empty if no row has any."""

    def count(d6: Permission | None) -> int:
        return 0 if d6 is None else sum(d6.buckets.values()) if kept else d6.deny

    with_items = [row for row in rows if count(row.scores.permission)]
    return trace(with_items, "--action deny" + (" --label kept" if kept else ""))


def marks(rows: Sequence[ReportRow]) -> list[str]:
    """Return a line of legend for each mark that the rows use."""
    notes = []
    if any(row.scores.diagnostic for row in rows):
        notes.append("◇ diagnostic: sees what a deployed memory cannot; outside the competition")
    if any("no_evidence" in row.scores.marks for row in rows):
        notes.append(NO_EVIDENCE)
    if any(row.scores.own_model for row in rows):
        notes.append("‡ own model: calls models of its own, whose tokens are unknown; never best, never certified")
    notes += skipped_and_failed(row.scores for row in rows)
    if any(not row.scores.real_reader for row in rows):
        notes.append("† no reader: picks a sentence of the context, no language model")
    return notes


def skipped_and_failed(rows: Iterable[RowScores]) -> list[str]:
    """Return a line of legend, with the rows concerned, for each of the marks § ¶ ※ ◌ ⊗ and for load (◷)."""
    skipped, failed, unsupported, empty, not_isolated = [], [], [], [], []
    rows = list(rows)
    for row in rows:
        use, failed_questions, asked = row.reader_use, row.without_answer, row.counts.asked
        if row.without_reader and use is not None:
            skipped.append(f"{row.label} {use.without_call:,} of {use.answers:,}")
        if "many_failed" in row.marks:
            failed.append(f"{row.label} {failed_questions:,} of {asked:,} ({100 * failed_questions / asked:.1f}%)")
        if "unsupported_sources" in row.marks and row.retrieval is not None:
            unsupported.append(f"{row.label} {100 * (row.retrieval.unsupported_claims or 0.0):.1f}%")
        if "many_non_answers" in row.marks and use is not None:
            reasons = ", ".join(f"{count:,} {NON_ANSWERS[reason]}" for reason, count in row.non_answers.items())
            empty.append(f"{row.label} {sum(row.non_answers.values()):,} of {use.answers:,} ({reasons})")
        if "not_isolated" in row.marks:
            not_isolated.append(row.label)
    return [
        *(
            [f"§ answers without any call of the reader: {', '.join(skipped)}; set apart, never best"]
            if skipped
            else []
        ),
        *(
            [f"¶ more than {100 * MANY_FAILED:.0f}% of the questions asked failed: {', '.join(failed)}"]
            if failed
            else []
        ),
        *(
            [f"※ sources that the items' text does not bear out: {', '.join(unsupported)} of those named"]
            if unsupported
            else []
        ),
        *(
            [f"◌ more than {100 * MANY_NON_ANSWERS:.0f}% of the answers say nothing, or not all: {'; '.join(empty)}"]
            if empty
            else []
        ),
        *([f"⊗ not isolated, could read the data set and its gold: {', '.join(not_isolated)}"] if not_isolated else []),
        *load_notes(rows),
    ]


def load_notes(rows: Sequence[RowScores]) -> list[str]:
    """Return lines on rows whose times were measured on a busy machine, and on rows for which that is unknown."""
    busy: list[str] = []
    unknown: dict[str, list[str]] = {}
    timed = [row for row in rows if row.latency is not None and row.latency.search.n]
    for row in timed:
        load = row.load
        if load is None:
            unknown.setdefault("the log does not say", []).append(row.label)
        elif load.others.value is None:
            total = "" if load.busy.value is None else f", {load.busy.value:.0f}% with the run's own"
            if "busy_machine" in row.marks:
                busy.append(f"{row.label} {load.busy.value:.0f}%, whoever used it ({load.others.reason})")
            else:
                unknown.setdefault(f"{load.others.reason}{total}", []).append(row.label)
        elif "busy_machine" in row.marks:
            busy.append(f"{row.label} {load.others.value:.0f}%")
    lines = (
        [f"◷ times taken while others than the run used the CPUs: {', '.join(busy)} of all CPU time"] if busy else []
    )
    for reason, labels in unknown.items():
        labels_prefix = "" if len(labels) == len(timed) else f"{', '.join(labels)}: "
        lines.append(f"{labels_prefix}CPU time of others than the run not measured: {reason}")
    return lines
