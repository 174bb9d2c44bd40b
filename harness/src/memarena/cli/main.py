"""Defines the command ``memarena``, whose subcommands parse flags, call one function and print."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from memarena_dataset.programs import run_guarded
from memarena_dataset.version_option import version_printer

from memarena.cli.lazy import LazyCommand, LazyGroup

_NAME = re.compile(r"[a-z][a-z0-9-]*")


class Commands(LazyGroup):
    """All commands. Each help line equals the first paragraph of its function's docstring, which a test checks."""

    entries: ClassVar = {
        "run": LazyCommand(
            "memarena.cli.run:run", "Stream a data set to memory backends, ask its questions, and log everything."
        ),
        "sweep": LazyCommand(
            "memarena.cli.sweep:sweep",
            "Carry out many runs of one cell each, here or on several machines; the same command continues a sweep.",
        ),
        "reproduce": LazyCommand(
            "memarena.cli.reproduce:reproduce",
            "Make a table of the paper, or all: run what it needs, print the paper's figures, ours and the difference.",
        ),
        "demo": LazyCommand(
            "memarena.cli.demo:demo",
            "Compare memories on a world made on the spot: a table after a minute, all of it after three on two cores.",
        ),
        "doctor": LazyCommand(
            "memarena.cli.doctor:doctor",
            "Say what this machine can run and what is missing. Exit 1 if something is broken.",
        ),
        "backends": LazyCommand(
            "memarena.cli.backends:app",
            "List memory backends; make and remove the separate environments of some.",
        ),
        "reader": LazyCommand("memarena.cli.reader:app", "Look at a reader before a run: window, requests, reasoning."),
        "readers": LazyCommand(
            "memarena.cli.readers:app", "List the servers that readers run on; make and remove their environments."
        ),
        "conformance": LazyCommand(
            "memarena.cli.conformance:conformance",
            "Test any implementation of the contract. Exit 0 if it passes, 1 if a check fails, 2 if it cannot be "
            "tested.",
        ),
        "judge": LazyCommand(
            "memarena.cli.judge:judge",
            "Append the verdicts that are missing to a run's log. Calibrate a judge; draw and read human samples.",
        ),
        "score": LazyCommand(
            "memarena.cli.scores:score",
            "Print the dimension scores of a run. Missing verdicts are computed on the way and not written.",
        ),
        "report": LazyCommand(
            "memarena.cli.scores:report",
            "Print the summary of one run or several; --full prints every table. Works while a run goes on.",
        ),
        "compare": LazyCommand(
            "memarena.cli.compare:compare_command",
            "Compare two memories, A and B: difference of each figure, 95% interval, p. Paired by question.",
        ),
        "show": LazyCommand(
            "memarena.cli.show:show",
            "Show one question from asking to verdict, or list the answers that a figure counts.",
        ),
        "export": LazyCommand(
            "memarena.cli.export:export",
            "Write a run's cells, scores, questions, answers, timings and verdicts as files.",
        ),
        "view": LazyCommand(
            "memarena.cli.view:view",
            "Look at runs in a browser: grid, questions, prompts with their evidence, charts, progress.",
        ),
        "site": LazyCommand(
            "memarena.cli.site:app",
            "Make a static site of results from bundles, runs and sweeps, and check one against its bundles.",
        ),
        "annotate": LazyCommand(
            "memarena.cli.annotate:annotate",
            "Judge a sample of answers in a browser: blind, by keyboard, several people at once.",
        ),
        "dataset": LazyCommand("memarena.cli.dataset:app", "Check, count and import data set folders."),
        "latency": LazyCommand(
            "memarena.cli.latency:app", "Measure how long answers take on this machine, and what a memory costs."
        ),
    }

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Resolve a command of this package, else execute the program ``memarena-NAME`` next to this interpreter.

        ``memarena gated explain DIR`` is ``memarena-gated explain DIR``: the harness imports no backend.
        """
        name = args[0] if args else ""
        program = Path(sys.executable).with_name(f"memarena-{name}")
        if name not in self.entries and _NAME.fullmatch(name) and os.access(program, os.X_OK):
            os.execv(program, [str(program), *args[1:]])  # noqa: S606 (a program of this environment)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="memarena",
    help="Measures the memory of on-device personal assistants.",
    cls=Commands,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=version_printer("memarena", "memarena"), is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Measures the memory of on-device personal assistants."""


def main() -> None:
    """Run the command. Exits with 2 for bad input, 3 for an incomplete run, 130 after Ctrl-C."""
    run_guarded(app)
