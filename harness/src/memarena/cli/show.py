"""``memarena show``: the answers behind a figure, one line each, and the trace of one question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from memarena_dataset.printing import write_out

from memarena import judging
from memarena.cli.scores import JudgeOption, RunArgument, run_folder
from memarena.evaluation import answer_records, evaluate, load_facts, missing_verdicts
from memarena.log.records import Record
from memarena.report.answer_list import (
    FILTERS,
    WORDS,
    Filter,
    answers_document,
    answers_json,
    failures_document,
    values_of,
)
from memarena.report.layout import Document
from memarena.report.question_trace.judging import JudgeRecord
from memarena.report.question_trace.trace import question_trace
from memarena.report.render.terminal import print_document
from memarena.scoring.errors import ScoringError
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts


def show(
    run: RunArgument,
    question: Annotated[str | None, typer.Option(help="Instance id: the trace of this question.")] = None,
    failures: Annotated[bool, typer.Option("--failures", help="One line per wrong or failed question.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="One line per question, right ones included.")] = False,
    cell: Annotated[
        str | None,
        typer.Option(help="Only this cell (bm25@embedded/s1), or the seeds behind a row's headline (bm25@embedded)."),
    ] = None,
    family: Annotated[str | None, typer.Option(help="Only this family, for example d7_qa.")] = None,
    dimension: Annotated[str | None, typer.Option(help="Only this dimension, for example D3.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            help="Only these: correct, wrong, backend_failed, infra_failed, reader_not_applicable; failed: these three."
        ),
    ] = None,
    stage: Annotated[
        str | None, typer.Option(help="Only wrong answers that went wrong there: misread, …; any: anywhere.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Only D6 items of this kind: deny, allow, or self (the owner's own).")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Only D6 items with this behaviour: disclosed, refuse, dont_know, …; kept: all but disclosed."
        ),
    ] = None,
    ground: Annotated[
        str | None,
        typer.Option(help="Only DENY items whose fact was withheld because of this: no_access, dont_know, other."),
    ] = None,
    lag: Annotated[str | None, typer.Option(help="Only this many days after the evidence: 0, 1-3, …")] = None,
    difficulty: Annotated[str | None, typer.Option(help="Only this difficulty, as the data set calls it.")] = None,
    tier: Annotated[
        str | None,
        typer.Option(help="Only this context tier: single_session, cross_session or full_ego."),
    ] = None,
    interference: Annotated[str | None, typer.Option(help="Only this many interfering facts: 0, 1, 2-4, …")] = None,
    full: Annotated[bool, typer.Option("--full", help="With --question: do not cut long texts.")] = False,
    output: Annotated[str, typer.Option("--format", help="table, or json: whole records, nothing cut.")] = "table",
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Show one question from asking to verdict, or list the answers that a figure counts.

    Exactly one of --question, --failures and --answers is given; the other
    options narrow the list.

    Examples:
      memarena show runs/first --failures --cell bm25 --dimension D3
      memarena show runs/first --question d7_qa_0012
    """
    if [failures, answers, question is not None].count(True) != 1:
        raise ScoringError("show: expected one of --failures, --answers and --question ID")
    if output not in ("table", "json"):
        raise ScoringError(f"--format {output}: expected one of table, json")
    wanted = {
        "family": family, "dimension": dimension, "outcome": outcome, "stage": stage, "action": action, "label": label,
        "ground": ground, "lag": _bucket(lag), "difficulty": difficulty, "tier": tier,
        "interference": _bucket(interference),
    }  # fmt: skip
    run = run_folder(run)
    facts = load_facts(run)
    cell = _named_cell(facts, cell)
    if question is not None:
        _refuse_filters(wanted)
        _show_question(facts, run, question, cell, name, full=full, as_json=output == "json")
        return
    scored = evaluate(facts, name)
    for filter_name, value in wanted.items():
        _check_filter(scored, filter_name, value)
    chosen = Filter(None if cell is None else frozenset(_cells_of(scored, cell)), **wanted)
    if output == "json":
        write_out(answers_json(facts, scored.questions, chosen, failures=failures))
        return
    document = failures_document if failures else answers_document
    print_document(document(facts, scored.questions, chosen))


def _show_question(
    facts: RunFacts, run: RunArgument, question: str, cell: str | None, name: str, *, full: bool, as_json: bool
) -> None:
    if question not in facts.questions:
        raise ScoringError(f"--question {question}: no such question in {run}")
    scored = evaluate(facts, name)
    cells = None if cell is None else _cells_of(scored, cell)
    asked = [c.cell_id for c in facts.manifest.cells if (c.cell_id, question) in facts.attempts]
    chosen = [c for c in asked if cells is None or c in cells]
    if not chosen:
        raise ScoringError(f"--question {question}: not asked yet in {cell or 'any cell'}")
    if as_json:
        write_out(_question_json(facts, run, scored, question, chosen, name))
        return
    for cell_id in chosen:
        judged = _judged(facts, name, question, cell_id)
        print_document(_trace(run, facts, scored, question, cell_id, judged, full=full))


def _question_json(
    facts: RunFacts, run: RunArgument, scored: ScoredRun, question: str, cells: Sequence[str], name: str
) -> str:
    """One object for each cell: the question with its gold, every attempt, model call and verdict, and the score."""
    records = answer_records(run, [(cell_id, question) for cell_id in cells])
    found: list[dict[str, object]] = []
    for cell_id in cells:
        score = next(q for q in scored.questions if (q.cell_id, q.instance_id) == (cell_id, question))
        kept = records[cell_id, question]
        parts: dict[str, Sequence[Record]] = {
            "asked": kept.asked,
            "calls": kept.calls,
            "judged": _judged(facts, name, question, cell_id),
        }
        found.append(
            {
                "question": facts.questions[question].model_dump(mode="json"),
                **{part: [record.model_dump(mode="json") for record in some] for part, some in parts.items()},
                "score": score.model_dump(mode="json"),
            }
        )
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


# ------------------------------------------------------------------ what may be asked for


def _named_cell(facts: RunFacts, cell: str | None) -> str | None:
    """The cell or row that a name stands for; a backend's name is enough where it has one row."""
    cells = [c.cell_id for c in facts.manifest.cells]
    rows = list(dict.fromkeys(name.rpartition("/")[0] for name in cells))
    if cell is None or cell in cells or cell in rows:
        return cell
    own = [row for row in rows if row.partition("@")[0] == cell]
    if len(own) == 1:
        return own[0]
    why = f"several rows are of {cell}" if own else "no such cell"
    raise ScoringError(f"--cell {cell}: {why}; there are: {', '.join(own or cells)}")


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


# ------------------------------------------------------------------ the trace of a question


def _trace(
    run: RunArgument,
    facts: RunFacts,
    scored: ScoredRun,
    question: str,
    cell_id: str,
    judged: Sequence[JudgeRecord],
    *,
    full: bool,
) -> Document:
    """The trace of a question, with the texts that scoring does not keep."""
    found = next(q for q in scored.questions if (q.cell_id, q.instance_id) == (cell_id, question))
    records = answer_records(run, [(cell_id, question)])[cell_id, question]
    return question_trace(
        facts.questions[question], facts.evidence, records.asked, records.calls, found, judged=judged, full=full
    )


def _judged(facts: RunFacts, name: str, question: str, cell_id: str) -> list[JudgeRecord]:
    """What every judge said of a question in a cell; that of the judge whose verdicts count comes first."""
    computed = missing_verdicts(facts, [(cell_id, question)]) if name == judging.JUDGE_NAME else ()
    said: list[JudgeRecord] = [*facts.verdicts, *computed, *facts.buckets, *facts.judging_failures]
    own = [r for r in said if (r.instance_id, r.cell_id) == (question, cell_id)]
    return sorted(own, key=lambda r: (r.judge != name, r.judge, r.attempt, r.repeat))
