"""``memarena reproduce``: makes the paper's tables by ordinary runs, sweeps, studies and reports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.printing import echo, note
from memarena_dataset.programs import EXIT_INCOMPLETE, EXIT_INTERRUPTED
from memarena_dataset.safe_files import acquire_lock

from memarena.cli.completion import paper_tables
from memarena.cli.sweep import EXECUTORS, noted_signals
from memarena.execution.backends.isolation import hide_arguments
from memarena.report.layout import Document
from memarena.report.render.latex import to_latex
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import print_document
from memarena.reproduction.document import reproduction_document
from memarena.reproduction.errors import ReproductionError
from memarena.reproduction.gathering import gather
from memarena.reproduction.planning import listing, missing_lines, plan_lines
from memarena.reproduction.reader_set import read_reader_set
from memarena.reproduction.running import Runner, StoppedError
from memarena.reproduction.steps import Settings, Step, steps_of
from memarena.reproduction.tables import ALL, PaperTable, chosen_tables

NAMES = ("tables.md", "tables.tex", "tables.html")


def reproduce(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE|all",
            help="Table or figure by its label in the paper, or all.",
            autocompletion=paper_tables,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for everything; the same again goes on.")
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Data set folder. Default: one of the paper's size, made in OUT/world."),
    ] = None,
    readers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Readers, other models, judge. Default: those of the paper.")
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs; each has one reader at a time.")] = 1,
    executor: Annotated[str, typer.Option(help="Of cells that are not timed: local, or ray (a cluster).")] = "local",
    address: Annotated[str | None, typer.Option(help="ray: HOST:PORT of the cluster's head, or auto.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="A trial: at most so many questions for each cell.")] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="Name the tables: needs, hours, commands. Do nothing.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="A line for each table: cells, hours, what is missing here.")
    ] = False,
) -> None:
    """Make a table of the paper, or all: run what it needs, print the paper's figures, ours and the difference.

    All is made of ordinary sweeps, studies and judgings in OUT. Readers of one
    GPU are started one after another; timed work has the machine to itself.
    Killed at any point it goes on with the same command. What this machine
    cannot do is named and left out: exit code 3.

    Examples:
      memarena reproduce all --plan
      memarena reproduce p1a-budget --out runs/paper --readers readers.toml
    """
    settings = Settings(
        readers=read_reader_set(readers),
        out=(out or Path("runs/paper")).absolute(),
        dataset=dataset,
        limit=limit,
        gpus=gpus,
        executor=_executor(executor, address),
    )
    if dataset is not None:
        _check_dataset(dataset)
    if list_all or plan:
        tables = chosen_tables(table or ALL)
        lines = listing(tables, settings) if list_all else plan_lines(tables, settings)
        echo("\n".join(lines))
        return
    if table is None:
        raise ReproductionError("reproduce: expected a table, or all; memarena reproduce --list names them")
    if out is None:
        raise ReproductionError("--out: expected a folder for the sweeps and studies")
    tables = chosen_tables(table)
    if sys.platform == "linux":  # the data set with its gold lies in these folders
        hide_arguments([out, dataset, readers])
    _reproduce(tables, settings, table)


def _reproduce(tables: Sequence[PaperTable], settings: Settings, name: str) -> None:
    """Run the steps of the tables, then write and print them. Raises ReproductionError if no step can run here."""
    steps = steps_of(tables, settings)
    if steps and all(step.missing for step in steps):
        lacking = ", ".join(missing_lines(steps, settings))
        raise ReproductionError(f"reproduce {name}: nothing of it can be run here; missing: {lacking}")
    settings.out.mkdir(parents=True, exist_ok=True)
    try:
        acquire_lock(settings.out / "reproduce.lock")  # until this process ends
    except BlockingIOError as error:
        raise ReproductionError(f"--out {settings.out}: another reproduction works there") from error
    with noted_signals() as stop:
        runner = Runner(settings, note, stop)
        try:
            runner.run(steps)
        except StoppedError:
            note("stopped; the same command goes on")
            sys.exit(EXIT_INTERRUPTED)
    gathered = gather(steps, settings, note)
    document = reproduction_document(tables, gathered, settings)
    _write(document, settings.out)
    print_document(document)
    _finish(runner, tables, steps, gathered.notes)


def _finish(runner: Runner, tables: Sequence[PaperTable], steps: Sequence[Step], notes: Sequence[str]) -> None:
    """Print what is incomplete, and exit with 3 if anything is."""
    settings = runner.settings
    incomplete = [*notes, *(f"left out: missing here: {reason}" for reason in missing_lines(steps, settings))]
    incomplete += [f"{title}: {reason}" for title, reason in runner.failed.items()]
    incomplete += [f"{table.name}: needs {table.people}" for table in tables if table.people]
    for line in incomplete:
        note(line)
    note(f"tables in {settings.out}: {', '.join(NAMES)}")
    if incomplete:
        sys.exit(EXIT_INCOMPLETE)


def _write(document: Document, out: Path) -> None:
    from memarena.report.render.html import document_to_html  # noqa: PLC0415 (templates, which no other format has)

    texts = (to_markdown(document), to_latex(document), document_to_html(document))
    for name, text in zip(NAMES, texts, strict=True):
        (out / name).write_text(text, encoding="utf-8")


def _executor(executor: str, address: str | None) -> tuple[str, ...]:
    if executor not in EXECUTORS:
        raise ReproductionError(f"--executor {executor}: expected one of {', '.join(EXECUTORS)}")
    if address is not None and executor != "ray":
        raise ReproductionError("--address: goes with --executor ray")
    return () if executor == "local" else ("--executor", executor, *(("--address", address) if address else ()))


def _check_dataset(folder: Path) -> None:
    try:
        with open_dataset(folder):
            pass
    except (DatasetError, OSError) as error:
        raise ReproductionError(f"--dataset {folder}: {error}") from error
