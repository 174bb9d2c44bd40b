"""``memarena reader``: what a run would find of a reader."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.programs import EXIT_FAULTS

from memarena.cli.run_config import reader_qualities
from memarena.cli.run_flags import RunFlags
from memarena.execution.models.model_pool import ReaderPool
from memarena.execution.models.reader_warmup import longest_prompt_tokens
from memarena.execution.planning.config import RunConfig, parse_config
from memarena.gateway import Gateway
from memarena.log.records import ReaderProbed
from memarena.readers import check_reader

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _group() -> None:
    """Look at a reader before a run: its window, what it takes, how it thinks."""


@app.command()
def check(
    reader: Annotated[str, typer.Argument(help="embedded, extractive, sglang:MODEL or the URL of an API.")],
    model: Annotated[str | None, typer.Option(help="Model behind the URL, where it serves several.")] = None,
    reader_window: Annotated[int | None, typer.Option(help="Context window of the reader in tokens.")] = None,
    no_system_role: Annotated[
        bool | None, typer.Option("--no-system-role", help="The reader's chat template has no system role.")
    ] = None,
    reader_param: Annotated[list[str] | None, typer.Option(help="KEY=JSON put into every request; repeatable.")] = None,
    reader_drop: Annotated[list[str] | None, typer.Option(help="Field left out of every request; repeatable.")] = None,
    max_context_tokens: Annotated[int, typer.Option(help="Tokens of context that a run would show it.")] = 8192,
) -> None:
    """Ask a reader as a run would, and print what was seen. Exit 0 if it is fit for a run, 1 if not.

    The API key is taken from MEMARENA_READER_API_KEY.
    """
    flags = RunFlags(
        model=model,
        reader_window=reader_window,
        no_system_role=no_system_role,
        reader_param=reader_param,
        reader_drop=reader_drop,
    )
    values = {"dataset": ".", "backends": ["none"], "max_context_tokens": max_context_tokens}
    config = parse_config({**values, "readers": [{"spec": reader, **reader_qualities(flags)}]}, None)
    result = _checked(config)
    width = max(map(len, result.found))
    for name, value in result.found.items():
        typer.echo(f"{name:<{width}}  {value}")
    if not result.ok:
        sys.stderr.write(f"not fit for a run: {result.message}\n")
        sys.exit(EXIT_FAULTS)


def _checked(config: RunConfig) -> ReaderProbed:
    with (
        tempfile.TemporaryDirectory(prefix="memarena-reader-") as folder,
        ReaderPool(config.readers, Path(folder), None, _say) as readers,
    ):
        (reader,) = readers.readers()
        with Gateway([reader.upstream], lambda _: None) as gateway:
            return check_reader(reader, gateway, longest_prompt_tokens(reader, config))


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
