"""``memarena compare``: compares two rows, paired by question on one data set or by world across several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.printing import write_out

from memarena import judging
from memarena.cli.scores import JudgeOption, run_sources
from memarena.evaluation import evaluate
from memarena.log.records import Record
from memarena.report.layout import Document
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import print_document
from memarena.report.tables.comparison import comparison_document, unpaired_document, worlds_document
from memarena.report.tables.question_changes import questions_csv, questions_document
from memarena.scoring.compare import Chosen, across_worlds, choose, compare, compare_unpaired
from memarena.scoring.errors import ScoringError
from memarena.scoring.question_changes import DIFFERS, compare_questions
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts

FORMATS = ("table", "md", "json")
QUESTION_FORMATS = (*FORMATS, "csv", "html")


def run_compare(runs: Sequence[Path], cells: Sequence[str], output: str, judge: str) -> None:
    """Compare rows of one run, of two, or across worlds, and print. Raises ScoringError if they cannot be compared."""
    if output not in FORMATS:
        raise ScoringError(f"--format {output}: expected one of {', '.join(FORMATS)}")
    scored = [evaluate(facts, judge) for facts in _loaded(runs, cells)]
    if len({s.scores.dataset.sha256 for s in scored}) > 1 and len(cells) == 2:
        worlds = across_worlds([(choose(s, cells[0]), choose(s, cells[1])) for s in scored])
        _refuse(worlds.incomparable)
        _emit([worlds], worlds_document(worlds), output)
        return
    compared = [compare(a, b) for a, b in _sides(scored, cells)]
    for comparison in compared:
        _refuse(comparison.incomparable)
        if not comparison.questions:
            raise ScoringError(
                f"compare: {comparison.a.label} and {comparison.b.label}: no question has an outcome on both sides"
            )
    sections = [part for comparison in compared for part in comparison_document(comparison).sections]
    _emit(compared, Document("MemArena comparison", tuple(sections)), output)


def run_compare_unpaired(runs: Sequence[Path], cells: Sequence[str], output: str, judge: str) -> None:
    """Compare rows of two data sets and print. Raises ScoringError if they cannot be compared."""
    if output not in FORMATS:
        raise ScoringError(f"--format {output}: expected one of {', '.join(FORMATS)}")
    scored = [evaluate(facts, judge) for facts in _loaded(runs, cells)]
    if len(scored) != 2:
        raise ScoringError(f"--unpaired: expected two runs, got {len(scored)}")
    compared = [compare_unpaired(a, b) for a, b in _sides(scored, cells)]
    for comparison in compared:
        _refuse(comparison.incomparable)
    sections = [part for comparison in compared for part in unpaired_document(comparison).sections]
    _emit(compared, Document("MemArena comparison", tuple(sections)), output)


def run_compare_questions(
    runs: Sequence[Path], cells: Sequence[str], output: str, judge: str, *, differs: bool
) -> None:
    """Compare question by question and print. Raises ScoringError if the runs cannot be compared."""
    if output not in QUESTION_FORMATS:
        raise ScoringError(f"--format {output}: with --questions expected one of {', '.join(QUESTION_FORMATS)}")
    facts = _loaded(runs, cells)
    scored = [evaluate(item, judge) for item in facts]
    compared = []
    for a, b in _sides(scored, cells):
        comparison = compare_questions(a, b, (facts[0], facts[-1]))
        _refuse(comparison.incomparable)
        if differs:
            comparison = comparison.model_copy(
                update={"questions": tuple(q for q in comparison.questions if q.change in DIFFERS)}
            )
        compared.append(comparison)
    if output == "csv":
        write_out(questions_csv(compared))
        return
    if output == "html":
        from memarena.report.render.html import document_to_html  # noqa: PLC0415 (templates, which no other format has)

        parts = [
            replace(part, key=f"{part.key}-{number}")
            for number, item in enumerate(compared, 1)
            for part in questions_document(item, table=True).sections
        ]
        write_out(document_to_html(Document("MemArena comparison", tuple(parts))))
        return
    sections = [part for item in compared for part in questions_document(item).sections]
    _emit(compared, Document("MemArena comparison", tuple(sections)), output)


def _loaded(runs: Sequence[Path], cells: Sequence[str]) -> list[RunFacts]:
    if len(cells) > 2:
        raise ScoringError(f"--cell: expected at most two, got {len(cells)}")
    return [source.load()[0] for run in runs for source in run_sources(run)]


def _sides(scored: Sequence[ScoredRun], cells: Sequence[str]) -> list[tuple[Chosen, Chosen]]:
    """Return the pairs to compare: the named cells, or all rows that both runs have."""
    if len(scored) == 1:
        if len(cells) != 2:
            rows = ", ".join(row.label for row in scored[0].scores.rows)
            raise ScoringError(f"compare: of a single run expected two --cell; there are: {rows}")
        return [(choose(scored[0], cells[0]), choose(scored[0], cells[1]))]
    if len(scored) > 2:
        raise ScoringError("compare: more than two runs are compared as worlds: give two --cell, one data set per run")
    if cells:
        return [(choose(scored[0], cells[0]), choose(scored[1], cells[-1]))]
    labels_by_run = [{row.label for row in s.scores.rows} for s in scored]
    shared = [row.label for row in scored[0].scores.rows if row.label in labels_by_run[1]]
    if not shared:
        a, b = (", ".join(sorted(labels)) for labels in labels_by_run)
        raise ScoringError(f"compare: the runs share no row; name two with --cell: the first has {a}, the second {b}")
    return [(choose(scored[0], label), choose(scored[1], label)) for label in shared]


def _refuse(barred: Sequence[str]) -> None:
    if barred:
        raise ScoringError(f"compare: not comparable: {'; '.join(barred)}")


def _emit(records: Sequence[Record], document: Document, output: str) -> None:
    if output == "table":
        print_document(document)
    elif output == "md":
        write_out(to_markdown(document))
    else:
        content = [
            json.loads(record.model_dump_json(), parse_float=lambda text: round(float(text), 6)) for record in records
        ]
        write_out(json.dumps({"comparisons": content}, indent=2, ensure_ascii=False) + "\n")


def compare_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN_A [RUN_B…]", help="One run, two, or one per world.")],
    cells: Annotated[
        list[str] | None,
        typer.Option("--cell", help="Row (bm25@embedded) or cell (bm25@embedded/s2); once for both, or twice: A, B."),
    ] = None,
    questions: Annotated[
        bool, typer.Option("--questions", help="Question by question, figures by family, settings that differ.")
    ] = False,
    differs: Annotated[
        bool, typer.Option("--differs", help="With --questions: only those whose outcome differs.")
    ] = False,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Two data sets: what a memory gains on A's worlds, such as public ones.")
    ] = False,
    output: Annotated[
        str, typer.Option("--format", help="table, md or json; with --questions also csv, html.")
    ] = "table",
    judge: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Compare two memories, A and B: difference of each figure, 95% interval, p. Paired by question.

    Intervals come from draws of persons (egos) with replacement. p is for
    orientation: no correction for many comparisons.

    Examples:
      memarena compare runs/first --cell bm25@extractive --cell vanilla@extractive
      memarena compare runs/monday runs/tuesday
      memarena compare runs/monday runs/tuesday --questions --differs
      memarena compare runs/public runs/fresh --unpaired
    """
    if unpaired and questions:
        raise ScoringError("--unpaired: questions of two data sets cannot be paired: leave out --questions")
    if questions:
        run_compare_questions(runs, cells or [], output, judge, differs=differs)
        return
    if differs:
        raise ScoringError("--differs: goes with --questions")
    if unpaired:
        run_compare_unpaired(runs, cells or [], output, judge)
        return
    run_compare(runs, cells or [], output, judge)
