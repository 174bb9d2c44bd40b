"""``memarena reader``: checks a reader before a run."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.printing import note
from memarena_dataset.programs import EXIT_FAULTS

from memarena.cli.records import command_of
from memarena.cli.setting_flags import FlagValues, SettingsOf, fields_of
from memarena.execution.models.model_pool import ReaderPool
from memarena.execution.models.reader_warmup import longest_prompt_tokens
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.parsing import parse_config
from memarena.gateway import Gateway
from memarena.log.records import ReaderProbed
from memarena.readers.checking import check_reader

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _group() -> None:
    """Look at a reader before a run: its window, what it takes, how it thinks."""


@dataclass(frozen=True, kw_only=True)
class CheckFlags:
    """Flags of the check."""

    reader: Annotated[
        str, typer.Argument(help="embedded, extractive, sglang:MODEL, llamacpp:FILE.gguf or an API's URL.")
    ]
    settings: Annotated[FlagValues, SettingsOf("reader check")] = field(default_factory=dict)


def _check(flags: CheckFlags) -> None:
    """Ask a reader as a run would, and print what was seen. Exit 0 if it is fit for a run, 1 if not.

    The API key is taken from MEMARENA_READER_API_KEY.
    """
    reader = {"spec": flags.reader, **fields_of(flags.settings, "readers")}
    values = {"dataset": ".", "backends": ["none"], "readers": [reader], **fields_of(flags.settings)}
    config = parse_config(values, None)
    result = _checked(config)
    width = max(map(len, result.found))
    for name, value in result.found.items():
        typer.echo(f"{name:<{width}}  {value}")
    if not result.ok:
        note(f"not fit for a run: {result.message}")
        sys.exit(EXIT_FAULTS)


check = app.command("check")(command_of(CheckFlags, _check))


def _checked(config: RunConfig) -> ReaderProbed:
    with (
        tempfile.TemporaryDirectory(prefix="memarena-reader-") as folder,
        ReaderPool(config.readers, Path(folder), None, note) as readers,
    ):
        (reader,) = readers.readers()
        with Gateway([reader.upstream], lambda _: None) as gateway:
            return check_reader(reader, gateway, longest_prompt_tokens(reader, config))
