"""Computes the rankings of a site: comparable rows of many runs, sorted, in groups whose order is significant.

A row is a memory with its options and a reader, over its seeds. Rows are in one ranking (a board) only if data set,
reader, budget, protocol, judge and isolation are the same, since their figures cannot be compared otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memarena.log.records import ReaderRef, Reading
from memarena.report.brief_rows import BriefRow, brief_rows, rank
from memarena.report.figures import is_headline
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, rows_of
from memarena.scoring.results import RowScores, RunScores
from memarena.site.entries import Entry, slug


@dataclass(frozen=True)
class BoardRow:
    """A row of a ranking."""

    entry: Entry
    brief: BriefRow
    row: ReportRow
    group: int | None
    """Number of the group, from 1: intervals of a group are all above those of the next; None: not ordered."""


@dataclass(frozen=True)
class Board:
    """Rows that share data set, questions, protocol, reader, budget, judge and isolation."""

    key: str
    title: str
    terms: tuple[tuple[str, str], ...]
    """(name, value) of the terms that all its rows share.

    Pages leave out the first (data set), or the first two (data set, reader), by their position.
    """
    runs: tuple[ReportInput, ...]
    """Runs of its rows, each with only these rows, in the order in which ``ReportRow.run`` numbers them."""
    rows: tuple[BoardRow, ...]
    """Rows, best first; diagnostics last."""

    @property
    def dataset(self) -> str:
        """SHA-256 of the data set."""
        return self.runs[0].scores.dataset.sha256


def boards_of(entries: Sequence[Entry]) -> list[Board]:
    """Return all rankings, grouped by data set; the data set with most rows and the longest ranking come first."""
    groups: dict[str, list[tuple[Entry, list[RowScores]]]] = {}
    terms: dict[str, tuple[tuple[str, str], ...]] = {}
    for entry in entries:
        rows_by_key: dict[str, list[RowScores]] = {}
        for row in entry.scores.rows:
            shared, identity = _terms(entry.scores, row)
            key = hashlib.sha256(identity.encode(errors="backslashreplace")).hexdigest()[:8]
            terms.setdefault(key, shared)
            rows_by_key.setdefault(key, []).append(row)
        for key, rows in rows_by_key.items():
            groups.setdefault(key, []).append((entry, rows))
    boards = _with_distinct_titles([_board(key, terms[key], members) for key, members in groups.items()])
    sizes: dict[str, int] = {}
    for board in boards:
        sizes[board.dataset] = sizes.get(board.dataset, 0) + len(board.rows)
    return sorted(boards, key=lambda b: (-sizes[b.dataset], b.dataset, -len(b.rows), b.title, b.key))


def _with_distinct_titles(boards: Sequence[Board]) -> list[Board]:
    """Return the boards with the terms that differ appended to equal titles."""
    result = []
    for board in boards:
        same_title = [other for other in boards if other.title == board.title]
        differ = [
            value
            for position, (_, value) in enumerate(board.terms)
            if len({other.terms[position] for other in same_title}) > 1
        ]
        result.append(replace(board, title=" · ".join([board.title, *differ])))
    titles = [board.title for board in result]
    # Some differences show only in the hash of the key, such as a judge's prompts.
    return [
        replace(board, title=f"{board.title} · {board.key[-8:]}") if titles.count(board.title) > 1 else board
        for board in result
    ]


def _terms(run: RunScores, row: RowScores) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the terms of a ranking as (name, value) for people, and as the JSON text that identifies it."""
    reader = next((r for r in run.readers if r.name == row.reader), None)
    reading = row.reading.model_dump(mode="json", exclude={"seed"})
    questions_asked = {"filter": run.question_filter, "families": dict(sorted(run.families.items()))}
    judges = [model.model_dump(mode="json") for model in run.judging.models]
    shared = (
        ("data set", f"{run.dataset.name} ({run.dataset.sha256[:12]}), {sum(run.families.values()):,} questions"),
        ("reader", _reader(reader, row.reader) + (", not called for some answers (§)" if row.without_reader else "")),
        ("budget", _budget(row.reading)),
        ("protocol", run.protocol + (f", filter {run.question_filter}" if run.question_filter else "")),
        ("judge", f"{run.judge}" + "".join(f", {model['model']}" for model in judges)
                  + "".join(f", version {version[:12]}" for version in run.judge_versions)),
        ("isolation", row.isolation or "not known"),
    )  # fmt: skip
    identity = [
        run.dataset.sha256, questions_asked, run.protocol, _reader_identity(reader, row.reader), reading,
        row.without_reader, run.judge, sorted(run.judge_versions), judges, row.isolation,
    ]  # fmt: skip
    return shared, json.dumps(identity, sort_keys=True)


def _budget(reading: Reading) -> str:
    """Return the budget of an answer and its settings of reading that differ from the default."""
    usual = Reading.model_fields
    unusual = [
        f"{name.replace('_', ' ')} {value}"
        for name in ("max_items", "thinking", "reasoning_tokens", "prompt_style", "d6_rules")
        if (value := getattr(reading, name)) != usual[name].default
    ]
    tokens = f"{reading.max_context_tokens:,} context and {reading.max_answer_tokens:,} answer tokens"
    return ", ".join([tokens, f"temperature {reading.temperature:g}", *unusual])


def _reader(reader: ReaderRef | None, name: str) -> str:
    return name if reader is None or reader.model == name else f"{name} ({reader.model})"


def _reader_identity(reader: ReaderRef | None, name: str) -> list[object]:
    hashes = {} if reader is None else {key: value for key, value in reader.details.items() if "sha256" in key.lower()}
    return [name, reader.model if reader else None, hashes]


def _board(key: str, terms: tuple[tuple[str, str], ...], members: Sequence[tuple[Entry, list[RowScores]]]) -> Board:
    """Build a ranking from the rows of its entries, sorted, with the group of each row."""
    runs = tuple(entry.report(tuple(rows)) for entry, rows in members)
    rows = rows_of(runs)
    tags = {id(row.scores): row for row in rows}
    triples = [(members[b.run - 1][0], b, tags[id(b.scores)]) for b in brief_rows(rows)]
    triples.sort(key=lambda triple: (triple[1].scores.diagnostic, *rank(triple[1]), triple[1].name))
    triples = _named(triples)
    groups = order_groups([brief for _, brief, _ in triples])
    first = runs[0].scores
    title = f"{first.dataset.name} · {runs[0].scores.rows[0].reader}"
    board_rows = tuple(BoardRow(e, b, r, group) for (e, b, r), group in zip(triples, groups, strict=True))
    return Board(f"{slug(title)}-{key}", title, terms, runs, board_rows)


def _named(rows: Sequence[tuple[Entry, BriefRow, ReportRow]]) -> list[tuple[Entry, BriefRow, ReportRow]]:
    """Return the rows with run number 1, so that they are ranked together; the entry's name is added to equal names."""
    names = [brief.name for _, brief, _ in rows]
    result = []
    for entry, brief, row in rows:
        name = f"{brief.name} · {entry.name}" if names.count(brief.name) > 1 else brief.name
        result.append((entry, replace(brief, run=1, name=name), row))
    return result


def order_groups(rows: Sequence[BriefRow]) -> list[int | None]:
    """Return the group of each row by *answerable*: each interval of a group lies above each interval of the next.

    None for diagnostics, unfinished rows and rows without an interval over at least 8 egos.
    """
    intervals = [(row, interval) for row in rows if (interval := row.answerable_interval) is not None and _ranks(row)]
    intervals.sort(key=lambda pair: -pair[1].low)
    groups: dict[int, int] = {}
    group = 1
    for position, (row, _) in enumerate(intervals):
        # A group ends if all intervals so far lie above all later ones, not only above the next.
        highest = max(later.high for _, later in intervals[position:])
        if position and min(earlier.low for _, earlier in intervals[:position]) > highest:
            group += 1
        groups[id(row)] = group
    return [groups.get(id(row)) for row in rows]


def _ranks(row: BriefRow) -> bool:
    interval = row.answerable_interval
    return interval is not None and not interval.few_clusters and not row.scores.diagnostic and is_headline(row.scores)
