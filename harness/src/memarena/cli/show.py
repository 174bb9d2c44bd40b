"""``memarena show``: lists the answers behind a figure, or prints the trace of one question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from memarena_dataset.printing import write_out

from memarena import judging
from memarena.cli.scores import JudgeOption, RunArgument, run_folder, views_of
from memarena.evaluation import answer_records, evaluate, load_facts
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
from memarena.report.question_view.terminal import question_document
from memarena.report.render.terminal import print_document
from memarena.scoring.errors import ScoringError
from memarena.scoring.results import QuestionScore
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
    wording: Annotated[str | None, typer.Option(help="Only this wording: plain, other_name or description.")] = None,
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
    filters = {
        "family": family, "dimension": dimension, "outcome": outcome, "stage": stage, "action": action, "label": label,
        "ground": ground, "lag": _bucket(lag), "difficulty": difficulty, "tier": tier,
        "interference": _bucket(interference), "wording": wording,
    }  # fmt: skip
    run = run_folder(run)
    facts = load_facts(run)
    cell = _named_cell(facts, cell)
    if question is not None:
        _refuse_filters(filters)
        _show_question(facts, run, question, cell, name, full=full, as_json=output == "json")
        return
    scored = evaluate(facts, name)
    for filter_name, value in filters.items():
        _check_filter(scored, filter_name, value)
    selected = Filter(None if cell is None else frozenset(_cells_of(scored, cell)), **filters)
    if output == "json":
        write_out(answers_json(facts, scored.questions, selected, failures=failures))
        return
    document = failures_document if failures else answers_document
    print_document(document(facts, scored.questions, selected))


def _show_question(
    facts: RunFacts, run: RunArgument, question: str, cell: str | None, name: str, *, full: bool, as_json: bool
) -> None:
    if question not in facts.questions:
        raise ScoringError(f"--question {question}: no such question in {run}")
    scored = evaluate(facts, name)
    cells = None if cell is None else _cells_of(scored, cell)
    asked = [c.cell_id for c in facts.manifest.cells if (c.cell_id, question) in facts.attempts]
    cells_shown = [c for c in asked if cells is None or c in cells]
    if not cells_shown:
        raise ScoringError(f"--question {question}: not asked yet in {cell or 'any cell'}")
    scores = {score.cell_id: score for score in scored.questions if score.instance_id == question}
    if as_json:
        write_out(_question_json(facts, run, [scores[cell_id] for cell_id in cells_shown], name))
        return
    for view in views_of(run, facts, [scores[cell_id] for cell_id in cells_shown], name):
        print_document(question_document(view, full=full))


def _question_json(facts: RunFacts, run: RunArgument, scores: Sequence[QuestionScore], name: str) -> str:
    """Return JSON with an object for each cell: question with gold, attempts, model calls, verdicts, score."""
    records = answer_records(run, [(score.cell_id, score.instance_id) for score in scores])
    objects: list[dict[str, object]] = []
    for score in scores:
        question, attempts = facts.questions[score.instance_id], records[score.cell_id, score.instance_id]
        parts: dict[str, Sequence[Record]] = {
            "asked": attempts.asked,
            "calls": attempts.calls,
            "judged": attempts.judged_with_rules(question, facts.evidence, name),
        }
        objects.append(
            {
                "question": question.model_dump(mode="json"),
                **{
                    part: [record.model_dump(mode="json") for record in part_records]
                    for part, part_records in parts.items()
                },
                "score": score.model_dump(mode="json"),
            }
        )
    return json.dumps(objects, indent=2, ensure_ascii=False) + "\n"


# ------------------------------------------------------------------ what may be asked for


def _named_cell(facts: RunFacts, cell: str | None) -> str | None:
    """Return the cell or row with this name; a backend's name stands for its only row. Raises ScoringError if none."""
    cells = [c.cell_id for c in facts.manifest.cells]
    rows = list(dict.fromkeys(name.rpartition("/")[0] for name in cells))
    if cell is None or cell in cells or cell in rows:
        return cell
    rows_of_backend = [row for row in rows if row.partition("@")[0] == cell]
    if len(rows_of_backend) == 1:
        return rows_of_backend[0]
    reason = f"several rows are of {cell}" if rows_of_backend else "no such cell"
    raise ScoringError(f"--cell {cell}: {reason}; there are: {', '.join(rows_of_backend or cells)}")


def _cells_of(scored: ScoredRun, cell: str) -> list[str]:
    """Return the cells behind the headline of the row with this name, or else the cell itself."""
    rows = [row for row in scored.scores.rows if row.label == cell]
    return [c.cell_id for row in rows for c in row.cells if c.seed_label in row.headline_seeds] or [cell]


def _check_filter(scored: ScoredRun, name: str, value: str | None) -> None:
    if value is None or value in WORDS.get(name, ()):
        return
    if name in WORDS:
        raise ScoringError(f"--{name} {value}: expected one of {', '.join(WORDS[name])}")
    values = sorted({item for q in scored.questions for item in values_of(q, name)})
    if value not in values:
        what = {"family": "no question of this family", "dimension": "no question of this dimension"}
        existing = ", ".join(values) or "none"
        raise ScoringError(f"--{name} {value}: {what.get(name, 'no question has it')}; there are: {existing}")


def _bucket(typed: str | None) -> str | None:
    """Return the name of a range of days or facts, in which reports have an en dash where users type a hyphen."""
    return None if typed is None else typed.replace("-", "–")


def _refuse_filters(wanted: dict[str, str | None]) -> None:
    flags = [f"--{name}" for name in FILTERS if wanted[name] is not None]
    if flags:
        raise ScoringError(f"{flags[0]}: goes with --failures or --answers, not with --question")
