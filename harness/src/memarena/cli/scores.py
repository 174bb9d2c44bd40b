"""``memarena score``, ``report``, ``show``: read a run's log, compute, print. Nothing here writes to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from memarena import judge as judging
from memarena.log.records import EvidenceSession, GatewayCall, Question, QuestionAsked
from memarena.log.store import read_records
from memarena.report.as_json import to_json
from memarena.report.document import report_document, score_document
from memarena.report.failures import failures_document
from memarena.report.layout import Document
from memarena.report.markdown import to_markdown
from memarena.report.story import question_story
from memarena.report.terminal import print_document
from memarena.scoring import RunFacts, ScoredRun, ScoringError, load_facts, score_run

FORMATS = ("table", "md", "json")

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
JudgeOption = Annotated[str, typer.Option("--judge", help="Whose verdicts count; `value` needs no model.")]


def score(
    run: RunArgument,
    output: Annotated[str, typer.Option("--format", help="table, md or json.")] = "table",
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Print the dimension scores of a run. Missing verdicts are computed on the way and not written."""
    _check_format(output)
    scored = _scored(run, name)
    _emit([scored], score_document(scored.scores), output)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of one run or several.")],
    output: Annotated[str, typer.Option("--format", help="table, md or json.")] = "table",
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Print the whole report of one run or several. Works while a run goes on."""
    _check_format(output)
    scored = [_scored(run, name) for run in runs]
    _emit(scored, report_document([s.scores for s in scored]), output)


def show(
    run: RunArgument,
    question: Annotated[str | None, typer.Option(help="Instance id: the whole story of one question.")] = None,
    failures: Annotated[bool, typer.Option("--failures", help="One line per question that did not end right.")] = False,
    cell: Annotated[str | None, typer.Option(help="Only this cell, for example bm25@embedded/s1.")] = None,
    family: Annotated[str | None, typer.Option(help="With --failures: only this family.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long texts.")] = False,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Show one question from asking to verdict, or list what went wrong."""
    if failures == (question is not None):
        raise ScoringError("show: expected either --failures or --question ID")
    facts = load_facts(run)
    _check_cell(facts, cell)
    if question is None:
        _check_family(facts, family)
        scored = _score_facts(facts, run, name)
        print_document(failures_document(facts, scored.questions, cell, family))
        return
    if question not in facts.questions:
        raise ScoringError(f"--question {question}: no such question in {run}")
    scored = _score_facts(facts, run, name)
    for cell_id in _cells_that_asked(facts, question, cell):
        print_document(_story(run, scored, question, cell_id, full=full))


# ------------------------------------------------------------------ scoring and printing


def _scored(run: Path, name: str) -> ScoredRun:
    return _score_facts(load_facts(run), run, name)


def _score_facts(facts: RunFacts, run: Path, name: str) -> ScoredRun:
    if name == judging.JUDGE_NAME:
        return score_run(facts, judging.missing_verdicts(run), name, _is_right)
    judges = sorted({verdict.judge for verdict in facts.verdicts})
    if name not in judges:
        there = ", ".join(judges) or "none"
        raise ScoringError(f"--judge {name}: no verdict by this judge in the log; there are: {there}")
    return score_run(facts, (), name, _is_right)


def _is_right(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> bool:
    return judging.judge_answer(question, evidence, answer).correct


def _emit(scored: Sequence[ScoredRun], document: Document, output: str) -> None:
    if output == "table":
        print_document(document)
    else:
        sys.stdout.write(to_markdown(document) if output == "md" else to_json([s.scores for s in scored]))


def _check_format(output: str) -> None:
    if output not in FORMATS:
        raise ScoringError(f"--format {output}: expected one of {', '.join(FORMATS)}")


# ------------------------------------------------------------------ show


def _check_cell(facts: RunFacts, cell: str | None) -> None:
    cells = [c.cell_id for c in facts.manifest.cells]
    if cell is not None and cell not in cells:
        raise ScoringError(f"--cell {cell}: no such cell; there are: {', '.join(cells)}")


def _check_family(facts: RunFacts, family: str | None) -> None:
    families = sorted({q.instance.family.value for q in facts.questions.values()})
    if family is not None and family not in families:
        raise ScoringError(f"--family {family}: no question of this family; there are: {', '.join(families)}")


def _cells_that_asked(facts: RunFacts, question: str, cell: str | None) -> list[str]:
    asked = [c.cell_id for c in facts.manifest.cells if (c.cell_id, question) in facts.attempts]
    chosen = [c for c in asked if cell in (None, c)]
    if not chosen:
        raise ScoringError(f"--question {question}: not asked yet in {cell or 'any cell'}")
    return chosen


def _story(run: Path, scored: ScoredRun, question: str, cell_id: str, *, full: bool) -> Document:
    """The story of a question, with the texts that scoring does not keep."""
    found = next(q for q in scored.questions if (q.cell_id, q.instance_id) == (cell_id, question))
    asked: list[QuestionAsked] = []
    calls: list[GatewayCall] = []
    wording: Question | None = None
    evidence: dict[str, EvidenceSession] = {}
    for record in read_records(run, "question", "evidence"):
        if record.kind == "question" and record.instance.instance_id == question:
            wording = record
        elif record.kind == "evidence":
            evidence[record.session.session_id] = record.session
    for record in read_records(run, "asked", "gateway_call", cell_id=cell_id):
        if record.kind == "asked" and record.instance_id == question:
            asked.append(record)
        elif record.kind == "gateway_call" and record.instance_id == question:
            calls.append(record)
    if wording is None:
        raise ScoringError(f"--question {question}: no such question in {run}")
    return question_story(wording, evidence, asked, calls, found, full=full)
