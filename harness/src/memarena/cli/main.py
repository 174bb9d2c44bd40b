"""The command ``memarena``: thin verbs that parse, call one function and print."""

from __future__ import annotations

from typing import Annotated

import typer

from memarena.cli import compare, conformance, dataset, demo, doctor, judge, latency, run, scores, show
from memarena.cli.errors import run_guarded

app = typer.Typer(
    name="memarena",
    help="Measures the memory of on-device personal assistants.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(dataset.app, name="dataset", help="Everything about dataset files.")
app.add_typer(latency.app, name="latency", help="What an answer takes on this machine, and what a memory costs.")
app.command("run")(run.run)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("conformance")(conformance.conformance)
app.command("judge")(judge.judge)
app.command("score")(scores.score)
app.command("report")(scores.report)
app.command("compare")(compare.compare_command)
app.command("show")(show.show)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 (only where asked for)

        typer.echo(f"memarena {version('memarena')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measures the memory of on-device personal assistants."""


def main() -> None:
    """Entry of the command. Exits with 2 for bad input, 3 for an incomplete run, 130 after Ctrl-C."""
    run_guarded(app)
