"""``memarena show``: the answers behind a figure, one line each, and the whole story of a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from memarena import judge as judging
from memarena.cli.scores import JudgeOption, RunArgument, missing_verdicts, score_facts
from memarena.log.records import EvidenceSession, GatewayCall, Question, QuestionAsked
from memarena.log.store import read_records
from memarena.report.failures import FILTERS, WORDS, Filter, answers_document, failures_document, values_of
from memarena.report.judge_story import JudgeRecord
from memarena.report.layout import Document
from memarena.report.story import question_story
from memarena.report.terminal import print_document
from memarena.scoring import RunFacts, ScoredRun, ScoringError, load_facts


def show(
    run: RunArgument,
    question: Annotated[str | None, typer.Option(help="Instance id: the whole story of one question.")] = None,
    failures: Annotated[bool, typer.Option("--failures", help="One line per question that did not end right.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="One line per question, right ones included.")] = False,
    cell: Annotated[
        str | None,
        typer.Option(help="Only this cell (bm25@embedded/s1), or the seeds behind a row's headline (bm25@embedded)."),
    ] = None,
    family: Annotated[str | None, typer.Option(help="Only this family, for example d7_qa.")] = None,
    dimension: Annotated[str | None, typer.Option(help="Only this dimension, for example D3.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(help="Only these: correct, wrong, backend_failed or infra_failed; failed: either of the two."),
    ] = None,
    stage: Annotated[
        str | None, typer.Option(help="Only wrong answers that went wrong there: misread, …; any: wherever.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Only D6 items of this kind: deny, allow, or self (the owner's own).")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Only D6 items treated so: disclosed, refuse, dont_know, …; kept: all but disclosed."),
    ] = None,
    ground: Annotated[
        str | None, typer.Option(help="Only DENY items that were kept because of this: no_access, dont_know, other.")
    ] = None,
    lag: Annotated[str | None, typer.Option(help="Only so many days after the evidence: 0, 1-3, …")] = None,
    difficulty: Annotated[str | None, typer.Option(help="Only this difficulty.")] = None,
    tier: Annotated[str | None, typer.Option(help="Only this context tier.")] = None,
    interference: Annotated[str | None, typer.Option(help="Only so many interfering facts: 0, 1, 2-4, …")] = None,
    full: Annotated[bool, typer.Option("--full", help="With --question: do not cut long texts.")] = False,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Show one question from asking to verdict, or list the answers behind a figure."""
    if [failures, answers, question is not None].count(True) != 1:
        raise ScoringError("show: expected one of --failures, --answers and --question ID")
    wanted = {
        "family": family, "dimension": dimension, "outcome": outcome, "stage": stage, "action": action, "label": label,
        "ground": ground, "lag": _bucket(lag), "difficulty": difficulty, "tier": tier,
        "interference": _bucket(interference),
    }  # fmt: skip
    facts = load_facts(run)
    _check_cell(facts, cell)
    if question is not None:
        _refuse_filters(wanted)
        _show_question(facts, run, question, cell, name, full=full)
        return
    scored = score_facts(facts, run, name)
    for filter_name, value in wanted.items():
        _check_filter(scored, filter_name, value)
    chosen = Filter(None if cell is None else frozenset(_cells_of(scored, cell)), **wanted)
    document = failures_document if failures else answers_document
    print_document(document(facts, scored.questions, chosen))


def _show_question(
    facts: RunFacts, run: RunArgument, question: str, cell: str | None, name: str, *, full: bool
) -> None:
    if question not in facts.questions:
        raise ScoringError(f"--question {question}: no such question in {run}")
    scored = score_facts(facts, run, name)
    cells = None if cell is None else _cells_of(scored, cell)
    asked = [c.cell_id for c in facts.manifest.cells if (c.cell_id, question) in facts.attempts]
    chosen = [c for c in asked if cells is None or c in cells]
    if not chosen:
        raise ScoringError(f"--question {question}: not asked yet in {cell or 'any cell'}")
    for cell_id in chosen:
        judged = _judged(facts, name, question, cell_id)
        print_document(_story(run, scored, question, cell_id, judged, full=full))


# ------------------------------------------------------------------ what may be asked for


def _check_cell(facts: RunFacts, cell: str | None) -> None:
    cells = [c.cell_id for c in facts.manifest.cells]
    if cell is not None and cell not in cells and not any(c.rpartition("/")[0] == cell for c in cells):
        raise ScoringError(f"--cell {cell}: no such cell; there are: {', '.join(cells)}")


def _cells_of(scored: ScoredRun, cell: str) -> list[str]:
    """The cell itself, or those behind the headline of the row of this name."""
    rows = [row for row in scored.scores.rows if row.label == cell]
    return [c.cell_id for row in rows for c in row.cells if c.seed_label in row.headline_seeds] or [cell]


def _check_filter(scored: ScoredRun, name: str, value: str | None) -> None:
    if value is None or value in WORDS.get(name, ()):
        return
    if name in WORDS:
        raise ScoringError(f"--{name} {value}: expected one of {', '.join(WORDS[name])}")
    known = sorted({found for q in scored.questions for found in values_of(q, name)})
    if value not in known:
        what = {"family": "no question of this family", "dimension": "no question of this dimension"}
        there = ", ".join(known) or "none"
        raise ScoringError(f"--{name} {value}: {what.get(name, 'no question has it')}; there are: {there}")


def _bucket(typed: str | None) -> str | None:
    """The name of a range of days or facts; reports set a dash between numbers, which no keyboard has."""
    return None if typed is None else typed.replace("-", "–")


def _refuse_filters(wanted: dict[str, str | None]) -> None:
    given = [f"--{name}" for name in FILTERS if wanted[name] is not None]
    if given:
        raise ScoringError(f"{given[0]}: goes with --failures or --answers, not with --question")


# ------------------------------------------------------------------ the story of a question


def _story(
    run: RunArgument,
    scored: ScoredRun,
    question: str,
    cell_id: str,
    judged: Sequence[JudgeRecord],
    *,
    full: bool,
) -> Document:
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
    return question_story(wording, evidence, asked, calls, found, judged=judged, full=full)


def _judged(facts: RunFacts, name: str, question: str, cell_id: str) -> list[JudgeRecord]:
    """What every judge said of a question in a cell; that of the judge whose word counts comes first."""
    made = [attempt.record for attempt in facts.attempts.get((cell_id, question), ())]
    computed = missing_verdicts(facts, made) if name == judging.JUDGE_NAME else ()
    said: list[JudgeRecord] = [*facts.verdicts, *computed, *facts.buckets, *facts.judging_failures]
    own = [r for r in said if (r.instance_id, r.cell_id) == (question, cell_id)]
    return sorted(own, key=lambda r: (r.judge != name, r.judge, r.attempt, r.repeat))
