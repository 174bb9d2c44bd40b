"""Builds the tables of scores: the main grid, dimensions, families, breakdowns, baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memarena.report.figures import (
    NA,
    average_to_rank_by,
    best,
    metric,
    milliseconds,
    number,
    percent,
    score,
    signed,
    why_without_d6,
)
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns, marks, trace, trace_slice
from memarena.scoring.figures import Slice
from memarena.scoring.results import ANSWERABLE, AVG_WITHOUT_D6, RowScores, RunScores

DIMENSION_NAMES = {
    "D1": "dialogue cloze",
    "D2": "metadata",
    "D3": "factual, temporal and counterfactual questions",
    "D4": "across sessions: conflicts and references",
    "D5": "abstention where nothing was said, an answer where something was",
    "D6": "permission, as F1 of privacy and utility",
}
FAMILY_NAMES = {
    "d5_cloze": "cloze",
    "d6_metadata": "metadata",
    "d7_qa": "qa",
    "d8_temporal": "temporal",
    "d10_counterfactual": "counterf.",
    "d1_conflict": "conflict",
    "d2_anaphora": "anaphora",
    "d3_confabulation": "confab.",
    "d4_permission": "permission",
    "x1_witness": "witness x",
}
SLICES = {
    "lag": ("by-days-between-evidence-and-question", "by days between evidence and question"),
    "difficulty": ("by-difficulty", "by difficulty"),
    "tier": ("by-context-tier", "by context tier"),
    "interference": ("by-number-of-interfering-facts", "by number of interfering facts"),
    "wording": ("by-how-the-question-names-the-thing", "by how the question names the thing"),
}
"""By breakdown: key and title of its table."""

ANSWERABLE_MEANS = "share of questions whose prompt holds turns that suffice for the gold, whatever the reader: percent"
RIGHT_MEANS = "share right of the questions that score (not X1, controls, the owner's own D6 items), percent"
SEARCH_MEANS = "Search above the floor (the same round trip with nothing behind it), p50"

VANILLA = "vanilla"
"""Backend with which others are compared; it has no memory and answers from the latest turns."""


def main_grid(rows: Sequence[ReportRow]) -> Section:
    """Return the main grid: headline figures of each backend with each reader."""
    scores = [row.scores for row in rows]
    average = average_to_rank_by(scores)
    columns = [
        Column(ANSWERABLE, ANSWERABLE_MEANS),
        Column("Rec", "recall: share right over the questions of D1 and D2 together, percent"),
        Column("Rea", "reasoning: share right over D3 and D4 together"),
        Column("Trust", "mean of D5 accuracy and F1_PU of D6"),
        Column("Avg", "mean of the six dimensions"),
        Column(AVG_WITHOUT_D6, "mean of D1 to D5"),
        Column("Avg*", "as Avg, with D5 as harmonic mean of its two halves"),
        Column("right", RIGHT_MEANS),
    ]
    names = [*(c.title for c in columns[:-1]), "all"]
    unranked = {"Avg", AVG_WITHOUT_D6} - {average}
    bests = {name: {} if name in unranked else best(scores, name) for name in names}
    gap = Column("Δ Vanilla", f"{average} less that of Vanilla with the same reader and budgets, points")
    times = [
        Column("S+TTFT ms", "time to the first token, end to end: Search+floor and TTFT, p50"),
        Column("Search ms", SEARCH_MEANS),
    ]
    use = [
        Column("calls", "calls of the reader per answer, mean"),
        Column("tokens", "tokens that the reader read and wrote per answer, mean"),
    ]
    body = [
        [
            *lead_cells(rows, row, of_times=True),
            *(metric(row.scores, n, bests[n]) for n in names),
            signed(gap_to_vanilla(rows, row, average)),
            *_times(row.scores),
            *_reader_use(row.scores),
        ]
        for row in rows
    ]
    notes = [*why_without_d6(scores), *marks(rows)]
    seeds = sorted({seed for row in rows if len(row.scores.headline_seeds) > 1 for seed in row.scores.headline_seeds})
    if seeds:
        notes.append(f"± sample standard deviation over seeds {', '.join(seeds)} (T = 0.3)")
    if any(bests.values()):
        notes.append("* (bold): best of its reader among competitors, and its interval lies above all of theirs")
    if not any(row.scores.counts.asked for row in rows):
        notes.append("no question has been asked yet")
    lead = lead_columns(rows)
    return section(
        "Main grid", [*lead, *columns, gap, *times, *use], body, notes, breaks=breaks(rows), trace=trace(rows)
    )


def gap_to_vanilla(rows: Sequence[ReportRow], row: ReportRow, average: str) -> float | None:
    """Return an average minus that of Vanilla with the same run, reader and budgets; None if either has no headline."""
    scores = row.scores
    vanilla = next(
        (
            r.scores
            for r in rows
            if r.run == row.run
            and r.scores.backend == VANILLA
            and r.scores.reader == scores.reader
            and r.scores.reading == scores.reading
        ),
        None,
    )
    if vanilla is None or scores.backend == VANILLA or scores.counts.missing or vanilla.counts.missing:
        return None
    average_value, vanilla_value = scores.metrics[average].value, vanilla.metrics[average].value
    return None if average_value is None or vanilla_value is None else average_value - vanilla_value


def _times(row: RowScores) -> list[Cell]:
    if row.latency is None:
        return [NA, NA]
    ttft = row.latency.end_to_end.p50 if row.real_reader else None
    return [milliseconds(ttft), milliseconds(row.latency.search_less_floor_p50)]


def _reader_use(row: RowScores) -> list[Cell]:
    if row.reader_use is None or row.own_model:
        return [NA, NA]
    return [number(row.reader_use.calls, 2), number(row.reader_use.tokens, 0)]


def dimension_table(rows: Sequence[ReportRow]) -> Section:
    """Return the table of the six dimensions; seed s1 has a separate row if the headline is over other seeds."""
    names = ["D1", "D2", "D3", "D4", "D5", "D5*", "D6", "X1"]
    meanings = {**DIMENSION_NAMES, "D5*": "harmonic mean of the two halves of D5", "X1": "extension, in no average"}
    columns = [Column(name, meanings[name]) for name in names]
    scores = [row.scores for row in rows]
    bests = {name: best(scores, name) for name in names}
    body: list[list[Cell]] = []
    rules, group_starts = [], breaks(rows)
    for index, row in enumerate(rows):
        if index in group_starts:
            rules.append(len(body))
        body.append([*lead_cells(rows, row), *(_dimension_cell(row.scores, n, bests[n]) for n in names)])
        if row.scores.greedy is not None:
            lead = lead_cells(rows, row)
            lead[-1] = Cell(f"{lead[-1].text}, s1 (T = 0)", faint=True)
            body.append([*lead, *(score(row.scores.greedy.get(n)) for n in names)])
    return section(
        "Dimensions", [*lead_columns(rows), *columns], body, breaks=rules, trace=trace_slice(rows, "dimension")
    )


def _dimension_cell(row: RowScores, name: str, bests: Mapping[str, float]) -> Cell:
    dimension_slice = _slice(row, "dimension", name.rstrip("*"))
    return replace(metric(row, name, bests), questions=dimension_slice.counts.asked if dimension_slice else None)


def corrected_table(rows: Sequence[ReportRow]) -> Section:
    """Return the table of dimensions corrected for chance."""
    names = ["D1", "D2", "D3", "D4", "D5", "D6"]
    body = [[*lead_cells(rows, row), *(metric(row.scores, f"{n}c") for n in names)] for row in rows]
    return section(
        "Above chance",
        [*lead_columns(rows), *(Column(n) for n in names)],
        body,
        ["(s - c) / (1 - c) with c the best baseline of the dimension; 0 is achievable without memory, 100 is perfect"],
        breaks=breaks(rows),
        trace=trace_slice(rows, "dimension"),
    )


def baseline_table(runs: Sequence[RunScores]) -> Section | None:
    """Return the table of scores that are achievable without memory; None if there are none."""
    several = len(runs) > 1
    names = ["D1", "D2", "D3", "D4", "D5", "D6"]
    lead = [Column("run", align="left")] if several else []
    body = [
        [
            *([Cell(str(number))] if several else []),
            Cell(base.name + (f" ({base.detail})" if base.name == "grep" else "")),
            *(percent(base.scores.get(n)) for n in names),
            signed(base.j),
        ]
        for number, run in enumerate(runs, 1)
        for base in run.baselines
        if any(value is not None for value in base.scores.values())
    ]
    if not body:
        return None
    columns = [
        *lead,
        Column("baseline", align="left"),
        *(Column(n) for n in names),
        Column(
            "J", "of D6: reached without looking at who asks, or by looking at that alone; to compare with a memory's J"
        ),
    ]
    notes = [
        "question only: n/a, no such cell in the run",
        "always tell, marker only (what was called public), asker only (by relation to the owner) know every fact",
    ]
    return section("Baselines", columns, body, notes)


def family_table(rows: Sequence[ReportRow]) -> Section:
    """Return the table of accuracy by family of questions."""
    present = [f for f in FAMILY_NAMES if any(_slice(row.scores, "family", f) for row in rows)]
    columns = [Column(FAMILY_NAMES[f]) for f in present]
    body = [[*lead_cells(rows, row), *(_share(row.scores, "family", f) for f in present)] for row in rows]
    return section(
        "Families",
        [*lead_columns(rows), *columns],
        body,
        ["share right, percent; permission: right action"],
        breaks=breaks(rows),
        trace=trace_slice(rows, "family"),
    )


def token_f1_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of mean token-F1 by family with open answers."""
    present = [
        f
        for f in FAMILY_NAMES
        if any((s := _slice(row.scores, "family", f)) is not None and s.token_f1 is not None for row in rows)
    ]
    if not present:
        return None
    body = []
    for row in rows:
        parts = [_slice(row.scores, "family", f) for f in present]
        body.append([*lead_cells(rows, row), *(percent(s.token_f1 if s else None) for s in parts)])
    columns = [*lead_columns(rows), *(Column(FAMILY_NAMES[f]) for f in present)]
    notes = ["mean over the answers that arrived, percent"]
    with_answers = [row for row in rows if (s := _slice(row.scores, "family", present[0])) and s.counts.asked]
    command = trace(with_answers, f"--family {present[0]}")
    return section("Token-F1 of open answers", columns, body, notes, breaks=breaks(rows), trace=command)


def breakdown_tables(rows: Sequence[ReportRow]) -> list[Section]:
    """Return the tables of each breakdown in SLICES that the data set has: shares right, and all figures by part.

    A breakdown with a single part is left out, except lag, whose single part states how old the evidence is.
    """
    sections = []
    for by, (name, words) in SLICES.items():
        keys = breakdown_keys(rows, by)
        if not keys or (len(keys) < 2 and by != "lag"):
            continue
        columns = [Column(f"{key} (n {_planned(rows, by, key)})") for key in keys]
        body = [[*lead_cells(rows, row), *(_share(row.scores, by, key) for key in keys)] for row in rows]
        command = trace_slice(rows, by)
        lead = lead_columns(rows)
        notes = ["share right, percent"]
        title = f"{words[0].upper()}{words[1:]}"
        sections.append(section(title, [*lead, *columns], body, notes, breaks=breaks(rows), trace=command, key=name))
        if len(keys) > 1:
            sections.append(
                replace(_figures_by(rows, by, keys, command), title=f"Figures {words}", key=f"figures-{name}")
            )
    return sections


def breakdown_keys(rows: Sequence[ReportRow], by: str) -> list[str]:
    """Return the keys of a breakdown that any row has, in their order."""
    longest = sorted((row.scores for row in rows), key=lambda r: -sum(s.by == by for s in r.slices))
    return list(dict.fromkeys(s.key for scores in longest for s in scores.slices if s.by == by))


def _figures_by(rows: Sequence[ReportRow], by: str, keys: Sequence[str], command: str) -> Section:
    """Return a line for each row and key of a breakdown, with all figures; a rule precedes each row."""
    body: list[list[Cell]] = []
    rules = []
    for row in rows:
        if body:
            rules.append(len(body))
        for key in keys:
            part = _slice(row.scores, by, key)
            cells = [_part_cell(part, n) for n in SLICE_FIGURES]
            body.append([*lead_cells(rows, row), Cell(key), *cells])
    columns = [*lead_columns(rows), Column(by, align="left"), *(Column(name) for name in SLICE_FIGURES)]
    notes = ["percent, seeds pooled; n/a where the part has no question for a figure"]
    return section("", columns, body, notes, breaks=rules, trace=command)


SLICE_FIGURES = ("D1", "D2", "D3", "D4", "D5", "D6", "Rec", "Rea", "Trust", "Avg")
"""Figures that breakdowns show; the JSON report has more."""


def _planned(rows: Sequence[ReportRow], by: str, key: str) -> str:
    counts = sorted({s.counts.planned for row in rows if (s := _slice(row.scores, by, key)) is not None})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def _share(row: RowScores, by: str, key: str) -> Cell:
    part = _slice(row, by, key)
    if part is None:
        return NA
    cell = score(part.score, so_far=part.counts.missing > 0)
    return replace(cell, questions=part.counts.asked)


def _part_cell(part: Slice | None, name: str) -> Cell:
    if part is None:
        return NA
    return replace(score(part.figures.get(name), so_far=part.counts.missing > 0), questions=part.counts.asked)


def _slice(row: RowScores, by: str, key: str) -> Slice | None:
    return next((s for s in row.slices if s.by == by and s.key == key), None)
