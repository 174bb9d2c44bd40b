"""Builds the summary at the head of a report: a table, findings, what cannot be concluded, and warnings.

``memarena report`` prints it alone unless ``--full`` is set, cut to MOST_LINES lines on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena.report.brief_rows import FEWEST_QUESTIONS, BriefRow, brief_rows
from memarena.report.figures import NA, milliseconds, number, percent, score, score_with_interval
from memarena.report.findings import findings, texts, unproven
from memarena.report.layout import Cell, Column, Document, Fact, Section, counted, section
from memarena.report.report_input import ReportInput
from memarena.report.rows import NO_EVIDENCE, comparable_groups, rows_of, skipped_and_failed
from memarena.report.summary import comparison_warnings, run_line, summary_section

TITLE = "Summary"
MOST_LINES = 50
"""Lines that a summary may take on a terminal."""
_WORDS = {
    "ego": "a person whose device is simulated: the memory holds what this person could know",
    "answerable": "percent of questions whose prompt holds turns that suffice for the gold, whatever the reader does",
    "recall@10": "percent of the evidence (sessions that hold the answer) among the first 10 items of Search",
    "right": "percent right of the questions that score (not X1, controls, owner's own D6); 95% interval over egos",
    "privacy": "percent of facts withheld from askers who may not know them; utility: disclosed to those who may",
    "Search": "p50 above the floor: the same round trip with nothing behind it; TTFT: p50 time to first token",
    "ingest": "for one day of one ego; MB: highest memory of the backend's processes",
}
"""Terms of the table and what they mean."""
_LINES_OF_A_RUN = ("data set", "asked", "apart", "judge", "in text", "verdicts", "reader", "state")
"""Names of the lines on a run that the summary shows; the full report has all (:func:`summary_section`)."""
SMALL = Cell(f"n<{FEWEST_QUESTIONS}", faint=True)
SMALL_MEANS = f"fewer than {FEWEST_QUESTIONS} questions, no share is given"


def brief_document(
    runs: Sequence[ReportInput],
    *,
    rows: int = 16,
    remarks: int = 6,
    words: bool = True,
    heads: int = 3,
    groups: int = 6,
) -> Document:
    """Return the summary of runs, cut to fit; a line states what each cut left out.

    Args:
        runs: the runs, in the order of their numbers.
        rows: rows of a table at most.
        remarks: findings, open questions and warnings at most, of each.
        words: whether terms are explained.
        heads: runs described at most.
        groups: groups of comparable runs at most.
    """
    parts: list[Section] = []
    for run_number, run in enumerate(runs[:heads], 1):
        full = summary_section(run_number, run.scores, several=len(runs) > 1)
        parts.append(
            Section(
                full.title,
                tuple(line for line in full.lines if isinstance(line, Fact) and line.name in _LINES_OF_A_RUN),
            )
        )
    if len(runs) > max(heads, 1):
        lines = [run_line(run_number, run.scores) for run_number, run in enumerate(runs, 1)]
        more = (f"and {len(lines) - rows} more: --full",) if len(lines) > rows else ()
        parts.append(Section("Runs", (*lines[:rows], *more)))
    run_groups = brief_groups(runs)
    for name, group in run_groups[:groups]:
        parts.append(brief_table(group[:rows], TITLE + name, rows_left_out=len(group) - rows))
        parts += brief_remarks(group, remarks, name)
    if len(run_groups) > groups:
        parts.append(Section(f"and {len(run_groups) - groups} more groups of runs that cannot be compared: --full"))
    warnings = [note for run in runs for note in summary_section(1, run.scores, several=False).notes]
    warnings += comparison_warnings([run.scores for run in runs])
    warnings += [line for run in runs for line in _failures(run)]
    parts += _remarks("Warnings", warnings, remarks)
    if words:
        parts.append(words_section())
    parts.append(
        Section(
            "More",
            (
                "memarena report RUN --full · --table NAME · --list-tables · --format html --out report.html",
                "memarena show RUN --failures (what went wrong) · memarena compare RUN RUN --cell A --cell B",
            ),
        )
    )
    return Document("MemArena", tuple(parts))


def words_section() -> Section:
    """Return the section that explains the terms of the summary."""
    return Section("Words", tuple(Fact(name, meaning, 10) for name, meaning in _WORDS.items()))


def brief_candidates(runs: Sequence[ReportInput]) -> Iterator[Document]:
    """Yield the summary, then shorter and shorter versions for a terminal on which it has too many lines."""
    for rows, remarks, words in ((16, 6, True), (12, 4, True), (10, 3, True), (10, 3, False), (8, 2, False)):
        yield brief_document(runs, rows=rows, remarks=remarks, words=words)
    yield brief_document(runs, rows=5, remarks=1, words=False, heads=0, groups=3)
    yield brief_document(runs, rows=5, remarks=1, words=False, heads=0, groups=2)
    yield brief_document(runs, rows=5, remarks=1, words=False, heads=0, groups=1)


def brief_groups(runs: Sequence[ReportInput]) -> list[tuple[str, list[BriefRow]]]:
    """Return (name, rows) for each group of comparable runs.

    The name lists the runs of the group, to be appended to a title; it is empty if there is only one group.
    """
    rows = rows_of(runs)
    groups = comparable_groups([run.scores for run in runs])
    result = []
    for members in groups:
        numbers = [index + 1 for index in members]
        name = "" if len(groups) == 1 else f", run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        result.append((name, brief_rows([row for row in rows if row.run in numbers])))
    return result


def brief_table(
    rows: Sequence[BriefRow], title: str = TITLE, *, rows_left_out: int = 0, same_reader: bool = False,
    least: int = FEWEST_QUESTIONS, reader_mark: bool = True,
) -> Section:  # fmt: skip
    """Return the table of the summary, in the order of ``rows``, without columns that have no figure.

    Args:
        rows: the rows of one group of comparable runs.
        title: its title.
        rows_left_out: how many rows of the group are not among ``rows``; a note gives the number.
        same_reader: all rows are of one run and one reader: no columns for these, nor for recall and tokens per second.
        least: shares of fewer questions are not shown.
        reader_mark: whether a note explains †.
    """
    several = not same_reader and len({row.run for row in rows}) > 1
    columns = [
        *([Column("run", align="left")] if several else []),
        Column("memory", align="left"),
        *([] if same_reader else [Column("reader", align="left")]),
        Column("asked"),
        Column("answerable [95%]"),
        Column("right [95%]"),
        *([] if same_reader else [Column("recall@10")]),
        Column("privacy"),
        Column("utility"),
        Column("Search ms"),
        Column("TTFT ms"),
        *([] if same_reader else [Column("tok/s")]),
        Column("ingest s/day"),
        Column("MB"),
    ]
    body = [_cells(row, several=several, same_reader=same_reader, least=least) for row in rows]
    table = section(title, columns, body)
    notes = _marks(rows, reader_mark=reader_mark)
    budgets = sorted({row.scores.reading.max_context_tokens for row in rows})
    if len(budgets) > 1:
        sizes = ", ".join(f"{tokens:,}" for tokens in budgets)
        notes.append(f"read within different budgets ({sizes} context tokens): recall and right answers depend on them")
    if any(cell.spread for row in body for cell in row):
        notes.append("± standard deviation over seeds")
    if any(cell is SMALL for row in body for cell in row):
        notes.append(f"{SMALL.text}: {SMALL_MEANS}")
    if rows_left_out > 0:
        notes.append(f"and {rows_left_out} more rows: --full")
    return Section(table.title, table=table.table, notes=tuple(notes))


def _cells(row: BriefRow, *, several: bool, same_reader: bool, least: int) -> list[Cell]:
    """Return the cells of a row in the order of the summary's columns."""
    return [
        *([Cell(str(row.run))] if several else []),
        Cell(row.name_by_times),
        *([] if same_reader else [Cell(row.reader)]),
        Cell(f"{row.scores.counts.asked:,}"),
        _if_enough(score_with_interval(row.answerable, row.answerable_interval), row.answerable_questions, least),
        _right(row, least),
        *([] if same_reader else [_if_enough(percent(row.recall), row.evidence_questions, least)]),
        _if_enough(score(row.scores.metrics.get("P")), row.deny, least),
        _if_enough(score(row.scores.metrics.get("U")), row.allow, least),
        milliseconds(row.search_ms),
        milliseconds(row.ttft_ms),
        *([] if same_reader else [number(row.tokens_per_s)]),
        number(row.ingest_s_per_day, 2),
        number(row.memory_mb, 0),
    ]


def brief_remarks(rows: Sequence[BriefRow], most: int = 6, name: str = "") -> list[Section]:
    """Return the sections of findings and of what cannot be concluded, each of ``most`` lines at most."""
    return [
        *_remarks(f"Findings{name}", texts(findings(rows)), most),
        *_remarks(f"What cannot be concluded{name}", texts(unproven(rows)), most),
    ]


def _failures(run: ReportInput) -> list[str]:
    """Return a line with the most frequent cause of failure for each row that has failures."""
    return [
        f"{row.label}: {counted(first.count, 'question')} {first.outcome.replace('_', ' ')}: {first.cause}"
        for row in run.scores.rows
        for first in row.failures[:1]
    ]


def _remarks(title: str, lines: Sequence[str], most: int) -> list[Section]:
    if not lines:
        return []
    more = [f"and {len(lines) - most} more: --full"] if len(lines) > most else []
    return [Section(title, (*lines[:most], *more))]


def _marks(rows: Sequence[BriefRow], *, reader_mark: bool) -> list[str]:
    notes = []
    diagnostics = [row.scores for row in rows if row.scores.diagnostic]
    if any("no_evidence" not in scores.marks for scores in diagnostics):
        notes.append("◇ diagnostic: sees what a deployed memory cannot, an upper bound outside the competition")
    if any("no_evidence" in scores.marks for scores in diagnostics):
        notes.append(NO_EVIDENCE)
    notes += skipped_and_failed(row.scores for row in rows)
    if reader_mark and any(not row.scores.real_reader for row in rows):
        notes.append("† no language model: picks a sentence of what the memory returned")
    return notes


def _if_enough(cell: Cell, questions: int, least: int) -> Cell:
    return cell if cell is NA or questions >= least else SMALL


def _right(row: BriefRow, least: int) -> Cell:
    counts = row.scores.counts
    if row.nothing_measured:
        return Cell("all failed")
    if row.right.low is None and counts.asked:
        return NA
    if counts.asked < least and counts.asked:
        return SMALL
    return score_with_interval(row.right, row.interval, so_far=counts.missing > 0)
