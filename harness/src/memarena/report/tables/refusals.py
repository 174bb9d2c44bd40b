"""Builds the D6 tables of the paper: refusals by a list of phrases, and D6 pooled over readers.

They allow a comparison with published figures. MemArena's scores do not use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, metric, percent, score, signed, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, backend_name, breaks, lead_cells, lead_columns, trace
from memarena.scoring.figures import Score
from memarena.scoring.permission import pooled_permission
from memarena.scoring.results import RowScores


def refusal_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the shares of answers that a list of phrases calls refusals, on DENY and ALLOW items; in no score."""
    with_permission = [row for row in rows if row.scores.permission]
    if not with_permission:
        return None
    columns = [
        Column("DENY", "items whose fact must be withheld"),
        Column("Withhold", "share of DENY items whose output has a phrase of refusal"),
        Column("substring", "share of DENY items whose output has the fact as written; failed backends count"),
        Column("ALLOW", "items whose fact may be disclosed"),
        Column("False Ref.", "share of ALLOW items whose output has a phrase of refusal; failed backends count"),
        Column("Utility", "the others of the ALLOW items: also those that do not know the fact"),
    ]
    body = [[*lead_cells(rows, row), *_refusals(row.scores)] for row in with_permission]
    notes = ["percent, by judging/refusals/refusals.v1.toml and the plain text of the fact; in no score"]
    return section(
        "Refusals by list (D6)",
        [*lead_columns(rows), *columns],
        body,
        notes,
        breaks=breaks(with_permission),
        trace=trace(with_permission, "--dimension D6"),
        trace_columns=[("Withhold", "--action deny"), ("False Ref.", "--action allow")],
    )


def _refusals(row: RowScores) -> list[Cell]:
    d6 = row.permission
    if d6 is None:
        return [NA] * 6
    substring_share = d6.deny_leaked_paper / d6.deny if d6.deny and not d6.unmeasured else None
    return [
        whole(d6.deny),
        metric(row, "Withhold"),
        percent(substring_share),
        whole(d6.allow),
        score(_rest(row.metrics["Utility"]), so_far=row.counts.missing > 0),
        metric(row, "Utility"),
    ]


def _rest(share: Score) -> Score:
    """Return 1 minus a share; the ends of its range are swapped."""
    value, low, high = (None if end is None else 1 - end for end in (share.value, share.high, share.low))
    return share.model_copy(update={"value": value, "low": low, "high": high})


def pooled_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return D6 of each memory, pooled over the items of all its readers; None if no memory has two readers."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[ReportRow]] = {}
    for row in rows:
        if row.scores.permission:
            groups.setdefault((row.scores.backend, tuple(sorted(row.scores.options.items()))), []).append(row)
    by_memory = [group for group in groups.values() if len({row.scores.reader for row in group}) > 1]
    if not by_memory:
        return None
    columns = [
        Column("backend", align="left"),
        Column("readers"),
        Column("cells", "readers × seeds"),
        Column("U", "share of ALLOW items whose answer discloses the fact"),
        Column("leaked", "share of DENY items whose output has the fact as written"),
        Column("gap", "leaked less U, points: above 0, those who may not know get the fact more often"),
        Column("F1_PU", "harmonic mean of U and 1 - leaked"),
    ]
    body = []
    for group in by_memory:
        readers = len({row.scores.reader for row in group})
        cells = sum(len(row.scores.headline_seeds) for row in group)
        body.append([Cell(backend_name(rows, group[0])), whole(readers), whole(cells), *_pooled(group)])
    notes = ["the paper's form, all items of readers and seeds together; n/a where an item has no outcome yet"]
    return section("D6 pooled over readers", columns, body, notes)


def _pooled(rows: Sequence[ReportRow]) -> list[Cell]:
    shares = pooled_permission(row.scores.permission for row in rows)
    if shares is None:
        return [NA] * 4
    return [
        percent(shares.utility),
        percent(shares.leaked),
        signed(shares.leaked - shares.utility),
        percent(shares.f1_pu),
    ]
