"""Tests the summary of a report: it fits a terminal, and states no order that the intervals do not support."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from memarena.cli.main import main
from memarena.cli.scores import report_run
from memarena.report.brief import MOST_LINES, brief_candidates, brief_document, brief_groups
from memarena.report.brief_rows import BriefRow, ranked_groups
from memarena.report.figures import best
from memarena.report.findings import (
    EvidenceLost,
    EvidenceRetrieved,
    FewEgos,
    NoInterval,
    NothingMeasured,
    OpenOrder,
    Ranking,
    UpperBound,
    carried_gates,
    findings,
    ranking,
    split_verdicts,
    unproven,
)
from memarena.report.layout import Document, Section
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import count_lines, print_document
from memarena.report.report_input import ReportInput
from memarena.scoring.figures import Counts, Permission, Score
from memarena.scoring.uncertainty_records import Interval

from ..support import golden_run, grid_run
from ..support.logs import write_log


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> ReportInput:
    """A run of five memories with two readers and twelve egos."""
    return report_run(write_log(tmp_path_factory.mktemp("grid") / "run", grid_run.records(12, prompt_words=4)))


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run")


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def memarena(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memarena", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def interval(low: float, high: float, clusters: int = 12) -> Interval:
    return Interval(low=low, high=high, se=0.01, method="bootstrap_egos", clusters=clusters)


def rows_with(grid: ReportInput, *shares: tuple[float, Interval | None]) -> list[BriefRow]:
    """Return rows of the grid's first reader with these (share right, interval); other figures are unchanged."""
    [(_, rows)] = brief_groups([grid])
    changed = []
    for row, (share, share_interval) in zip(rows, shares, strict=False):
        scores = row.scores
        metrics = {**scores.metrics, "all": Score(value=share, low=share, high=share)}
        intervals = {**scores.intervals, "all": share_interval} if share_interval else {}
        update = {"metrics": metrics, "intervals": intervals, "diagnostic": False}
        changed.append(replace(row, scores=scores.model_copy(update=update)))
    return changed


def shortest_that_fits(runs: list[ReportInput]) -> Document:
    return next(d for d in brief_candidates(runs) if count_lines(d) <= MOST_LINES)


def test_a_summary_takes_at_most_fifty_lines_and_says_what_it_left_out(grid: ReportInput) -> None:
    several = [
        replace(grid, scores=grid.scores.model_copy(update={"run_id": name, "protocol": name})) for name in "abcd"
    ]
    for runs in ([grid], several[:2], several):
        document = shortest_that_fits(runs)
        assert count_lines(document) <= MOST_LINES
    text = to_markdown(shortest_that_fits([grid]))
    for row in grid.scores.rows:
        assert f"| {row.backend}" in text
    assert count_lines(brief_document([grid], rows=5, remarks=1)) < count_lines(brief_document([grid]))
    assert "and 5 more rows: --full" in to_markdown(brief_document([grid], rows=5))


HIGH, MIDDLE, LOW = (0.9, interval(0.8, 0.95)), (0.5, interval(0.4, 0.6)), (0.2, interval(0.1, 0.3))


def test_separated_intervals_support_the_whole_order(grid: ReportInput) -> None:
    rows = rows_with(grid, HIGH, MIDDLE, LOW)
    names = [row.name for row in rows]
    assert ranked(rows).separated == (True, True)
    assert ranked(rows).text.endswith(f"so the order holds: {' > '.join(names)}.")
    assert not [remark for remark in unproven(rows) if isinstance(remark, OpenOrder)]


def test_overlapping_intervals_leave_the_order_of_the_two_open(grid: ReportInput) -> None:
    rows = rows_with(grid, HIGH, MIDDLE, (0.45, interval(0.35, 0.55)))
    names = [row.name for row in rows]
    assert ranked(rows).separated == (True, False)
    supported = f"what the intervals support: {names[0]} > {names[1]} ? {names[2]} (? = open)."
    assert ranked(rows).text.endswith(supported)
    (remark,) = [remark for remark in unproven(rows) if isinstance(remark, OpenOrder)]
    assert (remark.upper, remark.lower) == ((names[1], (0.4, 0.6)), (names[2], (0.35, 0.55)))
    assert f"whether {names[1]} answers more than {names[2]}" in remark.text


def test_intervals_over_three_egos_support_no_order(grid: ReportInput) -> None:
    rows = rows_with(grid, (0.9, interval(0.8, 0.95, 3)), (0.5, interval(0.4, 0.6, 3)))
    assert ranked(rows).text.endswith("the intervals support no order.")
    assert FewEgos(tuple(row.name for row in rows), rows[0].reader, 3) in unproven(rows)


def test_a_share_without_an_interval_supports_no_order(grid: ReportInput) -> None:
    rows = rows_with(grid, (0.9, None), MIDDLE)
    assert ranked(rows).separated == (False,)
    assert NoInterval(rows[0].name, rows[0].reader, rows[0].scores.counts.asked) in unproven(rows)


def ranked(rows: Sequence[BriefRow]) -> Ranking:
    result = ranking(rows)
    assert result is not None
    return result


def test_the_best_is_bold_only_where_its_interval_lies_above_all_others(grid: ReportInput) -> None:
    def bests(*estimates: tuple[float, Interval | None]) -> dict[str, float]:
        return best([row.scores for row in rows_with(grid, *estimates)], "all")

    reader = grid.scores.rows[0].reader
    low = (0.2, interval(0.1, 0.3))
    assert bests((0.9, interval(0.8, 0.95)), (0.5, interval(0.4, 0.6)), low) == {reader: 0.9}
    assert bests((0.9, interval(0.55, 0.95)), (0.5, interval(0.4, 0.6)), low) == {}
    assert bests((0.9, interval(0.8, 0.95, 7)), (0.5, interval(0.4, 0.6)), low) == {}
    assert bests((0.9, None), low) == {}


@pytest.mark.parametrize(
    ("items", "egos", "clusters", "expected"),
    [
        ((0.1, 0.5), (0.1, 0.6), 12, True),
        ((0.1, 0.5), (0.1, 0.6), 7, None),
        ((0.1, 0.5), (-0.1, 0.6), 12, None),
        ((-0.1, 0.5), (0.1, 0.6), 12, None),
        ((-0.5, -0.1), (-0.5, -0.2), 12, False),
    ],
)
def test_access_counts_as_controlled_only_if_items_and_egos_support_it(
    items: tuple[float, float], egos: tuple[float, float], clusters: int, expected: bool | None
) -> None:
    d6 = Permission(
        allow=9, deny=9, f1_pu=Score(), j=Score(), j_low=items[0], j_high=items[1], gates=items[0] > 0,
        deny_labels={}, allow_labels={}, known_facts=0,
    )  # fmt: skip
    assert carried_gates(d6, interval(*egos, clusters)) is expected
    assert carried_gates(d6, None) is None
    assert carried_gates(None, interval(*egos)) is None


def test_findings_name_lost_evidence_and_the_stage(grid: ReportInput) -> None:
    [(_, rows)] = brief_groups([grid])
    verdicts, others = split_verdicts(findings(rows))
    assert verdicts
    assert all(isinstance(finding, Ranking) for finding in verdicts)
    (evidence,) = [finding for finding in others if isinstance(finding, EvidenceRetrieved)]
    assert evidence.text.startswith("Evidence among the first 10 items of Search: oracle")
    split = next(row.scores.errors for row in rows if row.scores.backend == "bm25")
    assert split is not None
    losses = [finding for finding in others if isinstance(finding, EvidenceLost) and finding.memory.startswith("bm25")]
    assert split.not_retrieved in [finding.lost for finding in losses]


@pytest.mark.parametrize(("complete", "diagnostic", "short"), [(0.9, True, 3), (1.0, True, 0), (0.9, False, 0)])
def test_an_upper_bound_states_how_many_questions_have_evidence_above_the_budget(
    grid: ReportInput, complete: float, diagnostic: bool, short: int
) -> None:
    [(_, rows)] = brief_groups([grid])
    row = next(row for row in rows if row.scores.diagnostic)
    assert row.scores.retrieval is not None
    retrieval = row.scores.retrieval.model_copy(update={"questions": 30, "complete": complete})
    metrics = {**row.scores.metrics, "answerable": Score(value=0.95, low=0.95, high=0.95)}
    scores = row.scores.model_copy(update={"retrieval": retrieval, "diagnostic": diagnostic, "metrics": metrics})
    bounds = [finding for finding in findings([replace(row, scores=scores)]) if isinstance(finding, UpperBound)]
    assert [(finding.short, finding.questions) for finding in bounds] == ([(short, 30)] if short else [])


def test_a_report_is_a_summary_by_default(memarena: Command, run_dir: Path) -> None:
    _, short, _ = memarena("report", run_dir)
    _, full_report, _ = memarena("report", run_dir, "--full")
    assert len(short.splitlines()) <= MOST_LINES < len(full_report.splitlines())
    assert short.index("Summary") < short.index("What cannot be concluded")
    assert "Where wrong answers went wrong" in full_report
    assert "Where wrong answers went wrong" not in short
    assert " ±" in short and "± standard deviation over seeds" in short
    assert memarena("report", run_dir / "run.sqlite")[1] == short, "the log itself is taken too"


def test_single_tables_are_named_and_printed(memarena: Command, run_dir: Path) -> None:
    _, names, _ = memarena("report", run_dir, "--list-tables")
    assert {"main-grid", "retrieval", "ingest"} <= set(names.split())
    for name in names.split():
        code, out, err = memarena("report", run_dir, "--table", name)
        assert (code, err) == (0, "")
        assert out.strip()
    for name, end in (("retrival", "; did you mean retrieval?"), ("nonsense", "")):
        code, out, err = memarena("report", run_dir, "--table", name)
        assert (code, out) == (2, "")
        assert err.rstrip().endswith(end) and ("did you mean" in err) == bool(end)
    assert err.startswith("error: --table nonsense: this report has no such table; there are: main-grid, ")
    for option in (["--table", "main-grid"], ["--list-tables"]):
        assert memarena("report", run_dir, "--format", "html", *option)[0] == 2


@pytest.mark.parametrize("output", ["table", "md", "html"])
def test_shares_of_a_few_questions_are_omitted_by_default(memarena: Command, run_dir: Path, output: str) -> None:
    _, without, _ = memarena("report", run_dir, "--full", "--format", output)
    _, everything, _ = memarena("report", run_dir, "--full", "--small", "--format", output)
    mark = "n&lt;5" if output in ("md", "html") else "n<5"
    assert without.count(mark) > 5
    assert mark not in everything


def test_show_takes_the_name_of_a_memory_that_has_one_row(memarena: Command, run_dir: Path) -> None:
    _, short, _ = memarena("show", run_dir, "--answers", "--cell", "hazy")
    _, exact, _ = memarena("show", run_dir, "--answers", "--cell", "hazy@small")
    assert short == exact
    assert short
    code, _, err = memarena("show", run_dir, "--answers", "--cell", "bm25")
    assert code == 2
    assert err.startswith("error: --cell bm25: several rows are of bm25; there are: bm25@small, bm25@")


def test_show_gives_the_same_answers_as_json(memarena: Command, run_dir: Path) -> None:
    _, listing, _ = memarena("show", run_dir, "--failures", "--cell", "hazy")
    _, out, _ = memarena("show", run_dir, "--failures", "--cell", "hazy", "--format", "json")
    records = json.loads(out)
    lines = [line.split() for line in listing.splitlines() if line.startswith("  ")]
    assert len(records) == len(lines)
    for record, line in zip(records, lines, strict=True):
        assert {record["cell_id"], record["instance_id"], record["family"]} <= set(line)
    _, out, _ = memarena("show", run_dir, "--question", "temp_1", "--cell", "bm25@small/s3", "--format", "json")
    [record] = json.loads(out)
    assert record["score"]["instance_id"] == record["asked"][0]["instance_id"] == "temp_1"
    assert record["judged"][0]["judge"] == "value"
    code, _, err = memarena("show", run_dir, "--answers", "--format", "yaml")
    assert (code, err) == (2, "error: --format yaml: expected one of table, json\n")


def test_a_backend_that_failed_every_question_is_reported_without_figures(grid: ReportInput) -> None:
    scores = grid.scores
    row = scores.rows[0]

    def failed(counts: Counts) -> Counts:
        return counts.model_copy(update={"correct": 0, "wrong": 0, "backend_failed": counts.asked})

    cells = [cell.model_copy(update={"counts": failed(cell.counts)}) for cell in row.cells]
    failed_row = row.model_copy(update={"counts": failed(row.counts), "cells": tuple(cells)})
    run = replace(grid, scores=scores.model_copy(update={"rows": (failed_row, *scores.rows[1:])}))
    [(_, rows)] = brief_groups([run])
    [brief_failed] = [brief_row for brief_row in rows if brief_row.scores.label == row.label]
    counts = brief_failed.scores.counts
    assert findings(rows)[0] == NothingMeasured(brief_failed.name, brief_failed.reader, counts.asked, counts.asked)
    assert all(brief_failed not in group for group in ranked_groups(rows))
    text = to_markdown(brief_document([run]))
    head, _, after_heading = text.partition("Summary")
    assert "the backend failed every question of 1 of" in head
    assert "all failed" in after_heading


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_width_cuts_a_figure_or_a_name(grid: ReportInput, width: int) -> None:
    """A table wider than the terminal is split between columns, and each part repeats the names of the rows."""
    table = next(part.table for part in brief_document([grid]).sections if part.table is not None)
    text = io.StringIO()
    print_document(Document("", (Section("Summary", table=table),)), text, width)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for row in table.rows:
        rows_of_name = [line for line in lines if line.startswith(row[0].text)]
        assert all(any(cell.text in line for line in rows_of_name) for cell in row)
