"""The rows that every table shares: backend and reader, over one run or several that can be compared."""

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
    """A row of scores with the number of its run, from 1, and the letters that name it in charts."""

    run: int
    scores: RowScores
    tag: str = ""
    costs: RowCosts | None = None
    reviews: RowReviews | None = None


def rows_of(runs: Sequence[ReportInput]) -> list[ReportRow]:
    """All rows, runs in the order given; competitors, those without the reader, diagnostics; by reader."""
    result: list[ReportRow] = []
    for number, run in enumerate(runs, 1):
        costs = {cost.label: cost for cost in run.costs}
        reviews = {review.label: review for review in run.reviews}
        readers = list(dict.fromkeys(row.reader for row in run.scores.rows))
        for row in sorted(run.scores.rows, key=lambda r: (r.diagnostic, r.without_reader, readers.index(r.reader))):
            tag = _letters(len(result))
            result.append(ReportRow(number, row, tag, costs.get(row.label), reviews.get(row.label)))
    return result


def _letters(index: int) -> str:
    """A, B, … Z, AA, AB, …"""
    head, tail = divmod(index, 26)
    return (_letters(head - 1) if head else "") + chr(ord("A") + tail)


def comparable_groups(runs: Sequence[RunScores]) -> list[list[int]]:
    """Places of runs, from 0, whose rows may share a table: same data set, protocol, questions, rules in the prompt."""
    groups: dict[object, list[int]] = {}
    for index, run in enumerate(runs):
        families = tuple(sorted(run.families.items()))
        key = (run.dataset.sha256, run.protocol, run.question_filter, families, run.d6_rules)
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def lead_columns(rows: Sequence[ReportRow]) -> list[Column]:
    """Columns that name a row: its run where there are several, backend, reader."""
    several = len({row.run for row in rows}) > 1
    run = [Column("run", align="left")] if several else []
    return [*run, Column("backend", align="left"), Column("reader", align="left")]


def lead_cells(rows: Sequence[ReportRow], row: ReportRow, *, of_times: bool = False) -> list[Cell]:
    """Cells that name a row. ``of_times``: as for :func:`backend_name`."""
    several = len({r.run for r in rows}) > 1
    run = [Cell(str(row.run))] if several else []
    return [*run, Cell(backend_name(rows, row, of_times=of_times)), Cell(reader_name(row))]


def busy_sign(row: RowScores) -> str:
    """The sign of times that were taken while others used the CPUs; empty where they did not."""
    return " ◷" if "busy_machine" in row.marks else ""


def backend_name(rows: Sequence[ReportRow], row: ReportRow, *, of_times: bool = False) -> str:
    """The backend with its signs, and its options where they distinguish it from another row of its run.

    ``of_times``: with the sign that is about times alone, for tables that show times.
    """
    own = row.scores
    twins = {
        r.scores.label
        for r in rows
        if r.run == row.run and r.scores.backend == own.backend and r.scores.reader == own.reader
    }
    options = ",".join(f"{k}={v}" for k, v in own.options.items()) if len(twins) > 1 else ""
    return (
        own.backend
        + (f" [{options}]" if options else "")
        + (" ◇" if own.diagnostic else "")
        + (" ‡" if own.own_model else "")
        + (" §" if own.without_reader else "")
        + (" ¶" if "many_failed" in own.marks else "")
        + (" ※" if "unsupported_sources" in own.marks else "")
        + (" ∅" if "no_evidence" in own.marks else "")
        + (" ◌" if "many_non_answers" in own.marks else "")
        + (" ⊗" if "not_isolated" in own.marks else "")
        + (busy_sign(own) if of_times else "")
    )


def reader_name(row: ReportRow) -> str:
    """The reader, ``†`` behind one that is no language model."""
    return row.scores.reader if row.scores.real_reader else f"{row.scores.reader} †"


def row_name(rows: Sequence[ReportRow], row: ReportRow, *, of_times: bool = False) -> str:
    """Backend and reader in one, with the run where there are several. ``of_times``: as for :func:`backend_name`."""
    several = len({r.run for r in rows}) > 1
    return f"{backend_name(rows, row, of_times=of_times)} · {reader_name(row)}" + (
        f" (run {row.run})" if several else ""
    )


def breaks(rows: Sequence[ReportRow]) -> list[int]:
    """Rows with a rule above: where another run, another reader or the diagnostics begin."""

    def group(row: ReportRow) -> tuple[int, bool, bool, str]:
        own = row.scores
        return row.run, own.diagnostic, own.without_reader, "" if own.diagnostic else own.reader

    return [index for index in range(1, len(rows)) if group(rows[index]) != group(rows[index - 1])]


def trace(rows: Sequence[ReportRow], filters: str = "") -> str:
    """The command that lists the answers behind a row, with the first row that has any as the example."""
    rows_with_answers = [row for row in rows if row.scores.counts.asked]
    if not rows_with_answers:
        return ""
    first = rows_with_answers[0].scores.label
    return f"memarena show RUN --answers --cell {first}" + (f" {filters}" if filters else "")


def trace_slice(rows: Sequence[ReportRow], by: str) -> str:
    """The same, narrowed to a part of the questions that the row has answers to; empty where no row has any."""
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
    """The same, narrowed to DENY items, or to those whose fact was withheld; empty where no row has any."""

    def count(d6: Permission | None) -> int:
        return 0 if d6 is None else sum(d6.buckets.values()) if kept else d6.deny

    some = [row for row in rows if count(row.scores.permission)]
    return trace(some, "--action deny" + (" --label kept" if kept else ""))


def marks(rows: Sequence[ReportRow]) -> list[str]:
    """What the marks at names mean, as far as they are used."""
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
    """Lines on rows with answers made without the reader or that say nothing, failed questions, isolation, load."""
    skipped, failed, unsupported, silent, open_rows = [], [], [], [], []
    rows = list(rows)
    for row in rows:
        use, lost, asked = row.reader_use, row.without_answer, row.counts.asked
        if row.without_reader and use is not None:
            skipped.append(f"{row.label} {use.without_call:,} of {use.answers:,}")
        if "many_failed" in row.marks:
            failed.append(f"{row.label} {lost:,} of {asked:,} ({100 * lost / asked:.1f}%)")
        if "unsupported_sources" in row.marks and row.retrieval is not None:
            unsupported.append(f"{row.label} {100 * (row.retrieval.unsupported_claims or 0.0):.1f}%")
        if "many_non_answers" in row.marks and use is not None:
            reasons = ", ".join(f"{count:,} {NON_ANSWERS[reason]}" for reason, count in row.non_answers.items())
            silent.append(f"{row.label} {sum(row.non_answers.values()):,} of {use.answers:,} ({reasons})")
        if "not_isolated" in row.marks:
            open_rows.append(row.label)
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
            [f"◌ more than {100 * MANY_NON_ANSWERS:.0f}% of the answers say nothing, or not all: {'; '.join(silent)}"]
            if silent
            else []
        ),
        *([f"⊗ not isolated, could read the data set and its gold: {', '.join(open_rows)}"] if open_rows else []),
        *load_notes(rows),
    ]


def load_notes(rows: Sequence[RowScores]) -> list[str]:
    """Lines on rows with times: which were measured on a busy machine, and of which that is not known."""
    busy: list[str] = []
    unknown: dict[str, list[str]] = {}
    timed = [row for row in rows if row.latency is not None and row.latency.search.n]
    for row in timed:
        load = row.load
        if load is None:
            unknown.setdefault("the log does not say", []).append(row.label)
        elif load.others.value is None:
            whole = "" if load.busy.value is None else f", {load.busy.value:.0f}% with the run's own"
            if "busy_machine" in row.marks:
                busy.append(f"{row.label} {load.busy.value:.0f}%, whoever used it ({load.others.reason})")
            else:
                unknown.setdefault(f"{load.others.reason}{whole}", []).append(row.label)
        elif "busy_machine" in row.marks:
            busy.append(f"{row.label} {load.others.value:.0f}%")
    lines = (
        [f"◷ times taken while others than the run used the CPUs: {', '.join(busy)} of all CPU time"] if busy else []
    )
    for reason, labels in unknown.items():
        of_some = "" if len(labels) == len(timed) else f"{', '.join(labels)}: "
        lines.append(f"{of_some}CPU time of others than the run not measured: {reason}")
    return lines
