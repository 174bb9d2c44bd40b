"""Builds the two screens of `memarena demo`: all questions in one table; then slower measurements and next steps.

The first screen needs no language model. The second one has what takes longer: a memory that embeds every history, and
the times of a language model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memarena.report.brief import brief_groups, brief_table
from memarena.report.brief_rows import BriefRow
from memarena.report.figures import milliseconds, number
from memarena.report.findings import EvidenceLost, UpperBound, findings, texts, unproven
from memarena.report.judge_summary import judge_lines
from memarena.report.layout import Document, Fact, Section, counted
from memarena.report.report_input import ReportInput
from memarena.report.rows import load_notes

LLM_TOKENS = 192
"""Context tokens of the language model's prompts; few, since prefill takes most of the time on a CPU."""
_WORDS = {
    "answerable": "percent of questions whose prompt holds turns that suffice, whatever the reader",
    "asked, right": "questions; percent right of those that score, [95% interval] over people (egos)",
    "privacy": "percent of facts withheld from who may not know; utility: disclosed to who may",
    "Search": "p50 above the floor (the same call to a memory that does nothing)",
    "ingest, MB": "for a day of one person; peak memory of the backend",
}


def first_screen(demo_run: ReportInput, *, left_out: Mapping[str, str], world_is_new: bool = True) -> Document:
    """Return the first screen: the run over all questions, its table and findings.

    Args:
        demo_run: the run.
        left_out: by name of a memory that is not installed: how to install it.
        world_is_new: whether the world was generated for this demonstration.
    """
    rows, data = _rows(demo_run), demo_run.scores.dataset
    head = [
        Fact(
            "world",
            f"{data.ego_count} people, {counted(data.day_count, 'day')}{', made just now' if world_is_new else ''} "
            f"(sha256 {data.sha256[:12]})",
        ),
        Fact("asked", f"{counted(sum(demo_run.scores.planned.values()), 'question')} of each memory"),
        Fact("reader", "† picks a sentence of what a memory returned: honest, quick, no language model"),
        *judge_lines(demo_run.scores),
        *(Fact("left out", f"{name}, not installed: {remedy}") for name, remedy in left_out.items()),
    ]
    conclusions = findings(rows)
    losses = [finding for finding in conclusions if isinstance(finding, EvidenceLost)]
    bounds = [finding for finding in conclusions if isinstance(finding, UpperBound)]
    open_question = tuple(f"Not shown: {question.text}" for question in unproven(rows)[:1])
    return Document(
        "MemArena demo",
        (
            Section("MemArena demo", tuple(head)),
            brief_table(rows, "Which memory should an assistant have?", same_reader=True, reader_mark=False),
            Section("What this says", (*texts([*conclusions[:1], *losses[:1], *bounds[:1]]), *open_question)),
            Section("Words", tuple(Fact(name, text, 12) for name, text in _WORDS.items()), one_line_each=True),
        ),
    )


def second_screen(
    person: ReportInput | None, llm: ReportInput | None, *, page: Path, folder: Path, command: str = "memarena"
) -> Document:
    """Return the second screen: slower measurements, and commands to continue with.

    Args:
        person: run of every memory on the questions of one ego; None if the slow memory is not installed.
        llm: run that measures times of a language model; None if it is not installed.
        page: path of the HTML report.
        folder: folder of the demonstration's runs.
        command: name by which the user's shell calls this program.
    """
    parts = []
    if person is not None:
        rows = _rows(person)
        questions = counted(sum(person.scores.planned.values()), "question")
        title = f"One person's {questions}, with a memory that embeds every history on the CPU"
        table = brief_table(rows, title, same_reader=True, reader_mark=False)
        parts.append(Section(title, table=table.table, notes=(*table.notes, "one person gives no interval, no order")))
    if llm is not None and (times := _llm_times(llm)):
        parts.append(Section("Times of a language model on this CPU", times))
    parts.append(Section("Next", _next(page, folder, command), one_line_each=True))
    return Document("", tuple(parts))


def _rows(run: ReportInput) -> list[BriefRow]:
    return [row for _, group in brief_groups([run]) for row in group]


def _llm_times(llm: ReportInput) -> tuple[str, ...]:
    """Return lines of times only: answers of so small a model with so little context do not measure a memory."""
    model = next((reader.model for reader in llm.scores.readers), "")
    rows = _rows(llm)
    times = (
        f"{model}, {LLM_TOKENS} context tokens: first token after {milliseconds(row.ttft_ms).text} ms (p50 of "
        f"{counted(row.scores.counts.asked, 'question')} through {row.name_by_times}), then "
        f"{number(row.tokens_per_s).text} tokens/s. Judge memories with the reader you would deploy: --reader URL."
        for row in rows
    )
    return (*times, *load_notes([row.scores for row in rows]))


def _next(page: Path, folder: Path, command: str) -> tuple[str, ...]:
    return (
        f"charts, every table, single questions: open {page}",
        f"{command} show {folder / 'all'} --failures",
        f"{command} report {folder / 'all'} --full",
        f"your own memory: docs/vendors.md · your own data: {command} run --dataset DIR …",
    )
