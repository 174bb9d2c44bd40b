"""Compares the latest run of a memory with its last run of another version, within one ranking.

The table is on the memory's page: it shows a vendor what a new version gained or lost on the same questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena.report.figures import milliseconds, percent, signed
from memarena.report.layout import Cell, Column, Section, section
from memarena.scoring.results import ANSWERABLE
from memarena.site.boards import BoardRow

# (key of a metric, its name in the table).
_SHARES = ((ANSWERABLE, "answerable"), ("all", "right"), ("P", "privacy"), ("U", "utility"))


def change_sections(rows: Sequence[BoardRow]) -> Iterator[Section]:
    """Yield a table for each set of options of a memory whose latest run has another version than an earlier one."""
    by_options: dict[tuple[tuple[str, str], ...], list[BoardRow]] = {}
    for row in rows:
        by_options.setdefault(tuple(sorted(row.brief.scores.options.items())), []).append(row)
    for number, (options, rows_of_options) in enumerate(by_options.items()):
        rows_of_options.sort(key=lambda row: (row.entry.scores.started_at, row.entry.entry_id))
        latest = rows_of_options[-1]
        version = latest.brief.scores.backend_version
        other_versions = [row for row in rows_of_options if row.brief.scores.backend_version != version]
        if other_versions:
            yield _section(other_versions[-1], latest, ", ".join(f"{k}={v}" for k, v in options), number)


def _section(before: BoardRow, now: BoardRow, options: str, number: int) -> Section:
    old, new = before.brief.scores, now.brief.scores
    rows = []
    for key, name in _SHARES:
        first, second = (scores.metrics.get(key) for scores in (old, new))
        if first is not None and second is not None and first.value is not None and second.value is not None:
            change = signed(second.value - first.value)
            rows.append([Cell(f"{name}, %"), percent(first.value), percent(second.value), change])
    for name, first_ms, second_ms in (
        ("Search p50, ms", before.brief.search_ms, now.brief.search_ms),
        ("TTFT p50, ms", before.brief.ttft_ms, now.brief.ttft_ms),
    ):
        if first_ms is not None and second_ms is not None and before.entry.device == now.entry.device:
            difference = Cell(f"{second_ms - first_ms:+,.1f}")
            rows.append([Cell(name), milliseconds(first_ms), milliseconds(second_ms), difference])
    columns = [
        Column("figure", align="left"),
        Column(old.backend_version or "not stated"),
        Column(new.backend_version or "not stated"),
        Column("change"),
    ]
    title = "Change since the version before" + (f", {options}" if options else "")
    notes = (
        "`memarena compare RUN RUN` gives the interval of the difference, paired by question",
        *(["times are of two devices and not compared"] if before.entry.device != now.entry.device else []),
    )
    return section(title, columns, rows, notes, key=f"change-{number}")
