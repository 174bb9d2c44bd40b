"""Builds the tables of retrieval: recall of evidence, *answerable* by family, wrong answers by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memarena.report.figures import number, percent, score_with_interval, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns, trace, trace_slice
from memarena.report.tables.grid import ANSWERABLE_MEANS, FAMILY_NAMES
from memarena.scoring.results import ANSWERABLE


def retrieval_table(rows: Sequence[ReportRow]) -> Section:
    """Return the table of how much of the evidence Search returned."""
    columns = [
        Column("recall@10", "mean share of a question's evidence sessions that the first 10 items hold, percent"),
        Column("as named", "the same by what the backend names as sources, whatever the items' text holds"),
        Column("unsupported", "share of the sources named that the items' text does not bear out, percent"),
        Column("recall", "the same among all items"),
        Column("complete", "share of questions with all their evidence among the items"),
        Column("rank", "median rank of the first item with evidence"),
        Column("items", "items per search"),
        Column("tokens", "tokens of context per search (bytes / 4)"),
    ]
    body = []
    for row in rows:
        retrieval = row.scores.retrieval
        body.append(
            [
                *lead_cells(rows, row),
                percent(retrieval.recall_at_k if retrieval else None),
                percent(retrieval.claimed_recall_at_k if retrieval else None),
                percent(retrieval.unsupported_claims if retrieval else None),
                percent(retrieval.recall_all if retrieval else None),
                percent(retrieval.complete if retrieval else None),
                number(retrieval.first_rank_p50 if retrieval else None),
                number(retrieval.items if retrieval else None),
                number(retrieval.context_tokens if retrieval else None, 0),
            ]
        )
    notes = ["n/a: the backend does not say where its items come from"] if _some_silent(rows) else []
    by_claims = [row.scores.label for row in rows if row.scores.retrieval and row.scores.retrieval.basis == "claimed"]
    if by_claims:
        notes.append(
            f"claimed: the recall of {', '.join(by_claims)} is by what the backend names, not by its items' text"
        )
    return section("Retrieval", [*lead_columns(rows), *columns], body, notes, breaks=breaks(rows), trace=trace(rows))


STAGES = {
    "not_ingested": "the evidence never arrived at the memory",
    "not_retrieved": "not all of the evidence was among the items of Search",
    "cut_from_prompt": "all of it was found, not all of it fitted into the prompt",
    "misread": "all of it was in the prompt",
    "unknown": "the backend does not say where its items come from",
}
"""Stage at which an answer went wrong: its meaning."""


def error_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the counts of wrong answers to answerable questions by stage; None if no row has them."""
    if not any(row.scores.errors for row in rows):
        return None
    body = []
    for row in rows:
        split = row.scores.errors
        counts = [None if split is None else getattr(split, stage) for stage in STAGES]
        total = None if split is None else sum(n for n in counts if n is not None)
        body.append([*lead_cells(rows, row), whole(total), *(whole(n) for n in counts)])
    columns = [
        Column("wrong", "wrong answers to questions that had evidence and could be answered"),
        *(Column(stage.replace("_", " "), meaning) for stage, meaning in STAGES.items()),
    ]
    wrong = [row for row in rows if row.scores.errors and any(getattr(row.scores.errors, s) for s in STAGES)]
    return section(
        "Where wrong answers went wrong",
        [*lead_columns(rows), *columns],
        body,
        breaks=breaks(rows),
        trace=trace(wrong, "--outcome wrong"),
        trace_columns=[("wrong", "--stage any"), *((s.replace("_", " "), f"--stage {s}") for s in STAGES)],
    )


def _some_silent(rows: Sequence[ReportRow]) -> bool:
    return any(row.scores.retrieval is None for row in rows)


def answerable_by_family(rows: Sequence[ReportRow]) -> Section | None:
    """Return *answerable* by row and family, with its interval; a rule precedes each row."""
    with_answerable = [row for row in rows if row.scores.answerable]
    if not with_answerable:
        return None
    body: list[list[Cell]] = []
    rules = []
    for row in with_answerable:
        if body:
            rules.append(len(body))
        for part in row.scores.answerable:
            cell = replace(score_with_interval(part.score, part.interval), questions=part.questions)
            body.append([*lead_cells(rows, row), Cell(FAMILY_NAMES[part.family]), whole(part.questions), cell])
    columns = [
        *lead_columns(rows),
        Column("family", align="left"),
        Column("questions", "asked of it that have something to retrieve, seeds pooled"),
        Column(f"{ANSWERABLE} [95%]", ANSWERABLE_MEANS),
    ]
    notes = [
        "percent [95% interval over egos]; without questions that ask for nothing to be retrieved (the abstain half of "
        "D5, facts of D6 to be withheld), controls and the owner's own items of D6; witness x is in no other figure"
    ]
    if by_claims := [
        r.scores.label for r in with_answerable if r.scores.retrieval and r.scores.retrieval.basis == "claimed"
    ]:
        notes.append(f"claimed: of {', '.join(by_claims)} by the turns or sessions that items name, not by their text")
    command = trace_slice(rows, "family")
    return section("Answerable by family", columns, body, notes, breaks=rules, trace=command)


def recall_by_family(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of evidence recall at 10 by family."""
    recalls = {(id(row), s.key): s.recall_at_k for row in rows for s in row.scores.slices if s.by == "family"}
    present = [f for f in FAMILY_NAMES if any(recalls.get((id(row), f)) is not None for row in rows)]
    if len(present) < 2:
        return None
    body = [[*lead_cells(rows, row), *(percent(recalls.get((id(row), f))) for f in present)] for row in rows]
    columns = [*lead_columns(rows), *(Column(FAMILY_NAMES[f]) for f in present)]
    command = trace_slice(rows, "family")
    return section("Evidence recall at 10 by family", columns, body, ["percent"], breaks=breaks(rows), trace=command)
