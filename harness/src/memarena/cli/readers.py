"""``memarena readers``: lists the servers of readers, and installs or removes their environments."""

from __future__ import annotations

from typing import Annotated

import typer
from memarena_dataset.printing import echo, note

from memarena.cli.backends import environment_line
from memarena.cli.completion import one_of
from memarena.execution.backends.environment_making import make_environment, remove_environments
from memarena.execution.models.reader_environments import SERVERS, reader_environment

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help=f"One or more of {', '.join(SERVERS)}.", autocompletion=one_of(list(SERVERS))
    ),
]
USES = {
    "sglang": "--reader sglang:MODEL",
    "vllm": "{python} -m vllm.entrypoints.openai.api_server --model MODEL, then --reader URL",
    "llamacpp": "--reader llamacpp:FILE.gguf",
}
"""By server: how it is used once it is installed."""


@app.command("list")
def list_command() -> None:
    """List the servers, and what is installed of them."""
    for server in SERVERS:
        environment = reader_environment(server)
        echo(f"{server:<10}{environment.missing() or environment_line(environment)}")


@app.command()
def install(names: Names) -> None:
    """Make the environments of servers, apart from that of memarena; what is there already is left alone."""
    for environment, name in [(reader_environment(name), name) for name in names]:
        make_environment(environment, note)
        echo(f"{name}: {environment_line(environment)}")
        echo(f"use it with {USES[name].format(python=environment.environment_path().python)}")


@app.command()
def remove(names: Names) -> None:
    """Remove the environments of servers, also those that are out of date."""
    for environment, name in [(reader_environment(name), name) for name in names]:
        count = remove_environments(environment.name, note)
        echo(f"{name}: {count} environment{'' if count == 1 else 's'} removed")
