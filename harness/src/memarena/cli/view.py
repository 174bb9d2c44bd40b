"""``memarena view``: runs, their figures and answers in a browser. Nothing is written to a run."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from memarena import judging
from memarena.cli.scores import JudgeOption
from memarena.viewer.serving import serve


def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs, or folders that hold some.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: one that is free.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on; another than loopback opens it to the network.")] = (
        "127.0.0.1"
    ),
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Look at runs in a browser: grid, questions, prompts with their evidence, charts, progress.

    Prints the address to open and serves it until Ctrl-C.
    """

    def told(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        if open_:
            typer.launch(address)

    asyncio.run(serve(runs, name, host, port, told))
