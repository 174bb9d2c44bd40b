"""The first screen of the demonstration: four memories in one table, what it says, and where to go from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from memarena.report.brief import brief_groups, brief_table
from memarena.report.brief_rows import BriefRow, with_llm
from memarena.report.findings import EvidenceLost, findings, texts, unproven
from memarena.report.layout import Document, Fact, Section, counted
from memarena.report.report_input import ReportInput

LLM_TOKENS = 192
"""Context tokens of the language model's prompts: reading them is what takes its time on a CPU."""
_LLM_WORD = "TTFT, LLM"
_WORDS = {
    "answerable": "percent of questions whose prompt holds turns that suffice, whatever the reader",
    "asked, right": "questions; percent right of those that score, [95% interval] over people (egos)",
    "privacy": "percent of facts withheld from who may not know; utility: told to who may",
    "Search": "p50, ms above the floor (the same call to a memory that does nothing)",
    _LLM_WORD: "p50 ms of the LLM to its first token; its right answers",
    "ingest, MB": "seconds for a day of one person; peak memory of the backend",
}


def demo_document(
    everything: ReportInput,
    slow: ReportInput | None,
    llm: ReportInput | None,
    *,
    page: Path,
    folder: Path,
    left_out: Mapping[str, str],
    made: bool = True,
    command: str = "memarena",
) -> Document:
    """The first screen, from the runs over all questions, of the slow memory, and with the language model.

    The last two are None where they are not installed; ``left_out`` says how to get what is missing, by its name.
    ``made``: the world was made for it. ``command``: how this program is called in the user's shell.
    """
    apart = [] if slow is None else [replace(row, run=2) for row in _rows(slow)]
    rows = with_llm(_rows(everything) + apart, [] if llm is None else _rows(llm))
    data = everything.scores.dataset
    head = [
        Fact(
            "world",
            f"{data.ego_count} people, {counted(data.day_count, 'day')}{', made just now' if made else ''} "
            f"(sha256 {data.sha256[:12]})",
        ),
        Fact(
            "asked",
            f"{counted(sum(everything.scores.planned.values()), 'question')}{'' if slow is None else _few(slow)}",
        ),
        Fact("reader", "† picks a sentence of what a memory found: honest, quick, no language model"),
    ]
    if llm is not None:
        model = next((reader.model for reader in llm.scores.readers), "")
        sample = counted(sum(llm.scores.planned.values()), "question")
        person = "one" if slow is None else "that"
        head.append(Fact("LLM", f"{model} on this CPU: {sample} of {person} person, {LLM_TOKENS} context tokens"))
    head += [Fact("left out", f"{name}, not installed: {how}") for name, how in left_out.items()]
    table = brief_table(rows, "Which memory should an assistant have?", one=True, reader_mark=False)
    stated = findings(rows)
    losses = [finding for finding in stated[1:] if isinstance(finding, EvidenceLost)]
    words = tuple(Fact(name, text, 12) for name, text in _WORDS.items() if llm is not None or name != _LLM_WORD)
    why_low = [] if llm is None else [_why_low(llm)]
    return Document(
        "MemArena demo",
        (
            Section("MemArena demo", tuple(head)),
            table,
            Section("Words", words, one_line_each=True),
            Section("What this says", (*texts([*stated[:1], *losses[:1], *unproven(rows)[:1]]), *why_low)),
            Section("Next", _next(page, folder, command), one_line_each=True),
        ),
    )


def _few(slow: ReportInput) -> str:
    row = slow.scores.rows[0]
    return f"; {row.backend} {row.counts.planned} of one person, since it embeds every history on the CPU"


def _rows(run: ReportInput) -> list[BriefRow]:
    return [row for _, group in brief_groups([run]) for row in group]


def _why_low(llm: ReportInput) -> str:
    splits = [row.errors for row in llm.scores.rows if row.errors is not None]
    misread = sum(split.misread for split in splits)
    lacking = sum(split.not_ingested + split.not_retrieved + split.cut_from_prompt for split in splits)
    stages = (
        f": of its {lacking + misread} wrong answers to questions with evidence {lacking} lacked some in the prompt"
        if lacking + misread
        else ""
    )
    return (
        f"The LLM has 135 million parameters and only {LLM_TOKENS} tokens of context, to be quick on a CPU{stages}. "
        "It times a real model; judge memories with the reader you would deploy (--reader URL)."
    )


def _next(page: Path, folder: Path, command: str) -> tuple[str, ...]:
    return (
        f"charts, every table, single questions: open {page}",
        f"{command} show {folder / 'all'} --failures",
        f"{command} report {folder / 'all'} --full",
        f"your own memory: docs/vendors.md · your own data: {command} run --dataset DIR …",
    )
