"""Builds the output of ``--list`` and ``--plan``: needs, hours and cells of tables, and what this machine lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memarena.configs import read_named
from memarena.reproduction.hours import hours_of
from memarena.reproduction.steps import Settings, Step, seeds_of, steps_for, steps_of
from memarena.reproduction.tables import PaperTable, use_of


def listing(tables: Sequence[PaperTable], settings: Settings) -> list[str]:
    """Return lines for each table: what it needs, its hours, the commands that it runs."""
    steps = steps_of(tables, settings)
    lines = []
    for table in tables:
        table_steps = steps_for(table, steps)
        lines += [table.name, f"  {table.title}"]
        if table.people:
            lines.append(f"  needs: {table.people}")
            continue
        lines.append(f"  needs: {'; '.join(_needs(table, table_steps)) or 'the data set'}")
        if table_steps:
            lines.append(f"  hours: {_hours(table_steps, settings)}")
        lines.append(f"  stands for: {'; '.join(_commands(table, settings))}")
    return lines


def plan_lines(tables: Sequence[PaperTable], settings: Settings) -> list[str]:
    """Return a line for each table, then one for all."""
    steps = steps_of(tables, settings)
    lines = [f"{table.name}: {_plan(table, steps_for(table, steps), settings)}" for table in tables]
    cells = sum(len(step.cells) for step in steps)
    total = f"{cells} cells that differ, {_hours(steps, settings)} hours" if steps else "nothing to run"
    return [*lines, f"together: {total} (hours: {_BASIS})"]


# Basis of the estimated hours, printed with them.
_BASIS = "cells one after the other, by those sealed in OUT, else by the paper's times on an NVIDIA GB10"


def _plan(table: PaperTable, steps: Sequence[Step], settings: Settings) -> str:
    if table.people:
        return f"no cells; missing: {table.people}"
    if not steps:
        return "no cells: counts the data set"
    sweeps = sum(len(step.cells) for step in steps if step.kind == "sweep")
    timed = sum(len(step.cells) for step in steps if step.kind == "study")
    cells = " and ".join(
        text for count, text in ((sweeps, f"{sweeps} cells"), (timed, f"{timed} timed cells")) if count
    )
    return (
        f"{cells}, {_hours(steps, settings)} hours; missing: {', '.join(missing_lines(steps, settings)) or 'nothing'}"
    )


def missing_lines(steps: Sequence[Step], settings: Settings) -> list[str]:
    """Return what is missing on this machine for the steps, each with the memories that are left out for it."""
    memories_by_reason: dict[str, dict[str, None]] = {}
    for step in steps:
        for reason, memories in step.left_out_by_reason.items():
            memories_by_reason.setdefault(reason, {}).update(dict.fromkeys(memories))
    judged = any(step.kind == "sweep" for step in steps)
    if judged and (judge := settings.readers.missing_judge) is not None:
        memories_by_reason[judge] = {}
    return [
        f"{reason} (for {', '.join(memories)})" if memories else reason
        for reason, memories in memories_by_reason.items()
    ]


def _hours(steps: Iterable[Step], settings: Settings) -> str:
    hours = hours_of(steps, settings)
    return "unknown" if hours is None else f"{hours:,.1f}"


def _needs(table: PaperTable, steps: Sequence[Step]) -> list[str]:
    readers = list(dict.fromkeys(step.reader for step in steps))
    models = [
        f"{role} {name}"
        for configuration in table.configurations
        for role, name in use_of(configuration).helpers.items()
    ]
    memories = {memory for step in steps for memory, _ in step.cells}
    server = ["a Memobase server"] if any("memobase" in memory for memory in memories) else []
    return [*([f"readers {', '.join(readers)}"] if readers else []), *dict.fromkeys(models), *server]


def _commands(table: PaperTable, settings: Settings) -> list[str]:
    commands = []
    if settings.dataset is None:
        commands.append("masim generate")
    for name in table.configurations:
        commands.append(f"memarena sweep of {name} ({', '.join(seeds_of(read_named(name)))}) for each reader")
    if table.configurations and settings.readers.judge is not None:
        commands.append(f"memarena judge --judge {settings.readers.judge.name}")
    if table.study:
        commands.append("memarena latency select, run for each reader, report")
    if table.name == "main-grid-bootstrap":
        commands.append("memarena compare --cell memsearch --cell oracle")
    return [*commands, *(["memarena dataset stats"] if not commands[1:] else [])]
