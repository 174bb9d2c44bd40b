"""Describes a run at the head of a report: data, questions, reader, judge, state, floor, and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.judge_summary import judge_lines, judge_warnings
from memarena.report.layout import Fact, Section, counted
from memarena.scoring.results import RowScores, RunScores


def summary_section(number: int, run: RunScores, *, several: bool) -> Section:
    """Return the section that describes a run; its notes are warnings. ``several``: number it in the title."""
    data = run.dataset
    total = sum(run.planned.values())
    dimensions = ", ".join(f"{name} {count}" for name, count in run.planned.items())
    size = f"{counted(data.ego_count, 'ego')}, {counted(data.day_count, 'day')}"
    lines = [
        Fact("data set", f"{data.name} ({size}, sha256 {data.sha256[:12]})"),
        Fact("asked", f"{counted(total, 'question')} ({dimensions}), protocol {run.protocol}" + _filter(run)),
        *_without_rules(run),
        *(Fact("reader", line) for line in _readers(run)),
        *judge_lines(run),
        *_not_judged(run),
        Fact("state", _state(run)),
        Fact("floor", _floor(run)),
    ]
    title = f"Run {number}: {run.run_id}" if several else f"Run {run.run_id}"
    return Section(title, tuple(lines), notes=tuple(_warnings(run)))


def _without_rules(run: RunScores) -> list[Fact]:
    return [Fact("D6", "no rules for sharing in the prompt: d6_rules inferred")] if "inferred" in run.d6_rules else []


def run_line(number: int, run: RunScores) -> str:
    """Return one line on a run: data set, questions, readers, budgets."""
    readers = ", ".join(reader.name for reader in run.readers)
    budgets = "; ".join(sorted({_budget(row) for row in run.rows}))
    questions = counted(sum(run.planned.values()), "question")
    return f"{number}  {run.run_id[:8]}: {run.dataset.name}, {questions}; {readers}; {budgets}"


def _not_judged(run: RunScores) -> list[Fact]:
    count = run.not_judged
    return [Fact("apart", f"not judged: {count:,}, they need a judge with a model")] if count else []


def _filter(run: RunScores) -> str:
    return f", filter {run.question_filter}" if run.question_filter else ""


def _readers(run: RunScores) -> list[str]:
    lines = []
    for reader in run.readers:
        budgets = sorted({_budget(row) for row in run.rows if row.reader == reader.name})
        model = reader.model if reader.is_real_reader else "no reader: picks a sentence of the context"
        result_class = "" if reader.result_class == "unknown" else f"; {reader.result_class.replace('_', ' ')}"
        lines.append(f"{reader.name} ({model}); {'; '.join(budgets)}{result_class}")
    return lines


def _budget(row: RowScores) -> str:
    reading = row.reading
    return f"{reading.max_context_tokens:,} context tokens, {reading.max_answer_tokens:,} answer tokens"


def _state(run: RunScores) -> str:
    """Return in words how the run ended, how many questions were asked, and whether cells failed entirely."""
    counts = [cell.counts for row in run.rows for cell in row.cells]
    asked, planned = sum(c.asked for c in counts), sum(c.planned for c in counts)
    segments = f", {run.segments} segments" if run.segments > 1 else ""
    ending = "running, or killed" if run.ended == "running" else run.ended
    failed_cells = _failed_cells(run)
    failure_note = (
        f"; the backend failed every question of {failed_cells} of {counted(len(counts), 'cell')}"
        if failed_cells
        else ""
    )
    return f"{ending}; {asked:,} of {planned:,} questions asked{segments}{failure_note}"


def _failed_cells(run: RunScores) -> int:
    """Return the number of cells whose backend failed every question."""
    counts = [cell.counts for row in run.rows for cell in row.cells]
    return sum(bool(c.asked) and c.backend_failed == c.asked for c in counts)


def _floor(run: RunScores) -> str:
    if run.floor is None:
        return "not measured"
    parts = []
    spans_by_name = [("Search", run.floor.search), ("gateway hop", run.floor.gateway_hop)]
    if run.floor.gateway_added is not None:
        spans_by_name.append(("gateway less direct", run.floor.gateway_added))
    for name, spans in spans_by_name:
        value = "n/a" if spans.p50 is None else f"{spans.p50:.2f} ms"
        parts.append(f"{name} p50 {value} (n {spans.n})")
    return "null backend and null reader on this machine: " + ", ".join(parts)


def _warnings(run: RunScores) -> list[str]:
    """Return what to know before reading the figures: failures, missing questions or verdicts, violations."""
    notes = []
    counts = [cell.counts for row in run.rows for cell in row.cells]
    if failed_cells := _failed_cells(run):
        notes.append(
            f"the backend failed every question of {failed_cells} of {counted(len(counts), 'cell')}: nothing was "
            "measured there (see Failures)"
        )
    names = sorted({row.backend for row in run.rows if row.own_model})
    if names:
        notes.append(
            f"own model: {', '.join(names)} (‡) calls models of its own: tokens unknown, not the reader's work alone, "
            "never certified"
        )
    unread = sum(c.reader_not_applicable for c in counts)
    if unread:
        notes.append(
            f"reader not applicable: in {counted(unread, 'question')} it finds no context or no question in the "
            "backend's own prompt; such rows have no headline: use another reader, or --central-reading"
        )
    missing, infra_and_unjudged = sum(c.missing for c in counts), sum(c.infra_failed for c in counts)
    if missing:
        notes.append(
            f"incomplete: {counted(missing, 'question')} not asked yet; figures with ~ are over those asked so far"
        )
    infra_failed = infra_and_unjudged - run.judging.unjudged
    if infra_failed:
        notes.append(
            f"infrastructure failures: {counted(infra_failed, 'question')}; such rows have a range "
            "(all wrong … all right) and no headline until --resume has repaired them"
        )
    notes += judge_warnings(run)
    late = sum(row.after_return_calls for row in run.rows)
    if late:
        notes.append(f"model calls after their RPC had returned: {late:,}, a violation of the contract")
    refusals = sum(row.budget_refusals for row in run.rows)
    if refusals:
        notes.append(f"model calls refused because a budget was spent: {refusals:,}")
    notes += [f"problem: {problem}" for problem in run.problems[:5]]
    if len(run.problems) > 5:
        notes.append(f"and {len(run.problems) - 5} more problems in the log")
    return notes


def comparison_warnings(runs: Sequence[RunScores]) -> list[str]:
    """Return the reasons why rows of these runs cannot be compared."""
    notes = []
    if len({run.dataset.sha256 for run in runs}) > 1:
        notes.append("the runs used different data sets: their rows cannot be compared and are in separate tables")
    if len({run.protocol for run in runs}) > 1:
        notes.append("the runs used different protocols: their rows are in separate tables")
    if len({run.d6_rules for run in runs}) > 1:
        notes.append("the readers' prompts have rules for sharing in some runs only: their rows are in separate tables")
    if len({tuple(run.planned.items()) for run in runs}) > 1:
        notes.append("the runs asked different questions: their rows are in separate tables")
    if len({run.judge_versions for run in runs if run.judge_versions}) > 1:
        notes.append("the runs were judged by different versions of their judges")
    return notes
