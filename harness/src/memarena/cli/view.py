"""``memarena view``: shows runs, figures and answers in a browser; logs are only read, reviews stored separately."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from aiohttp import web
from memarena_dataset.printing import write_err, write_out

from memarena import judging
from memarena.cli.scores import JudgeOption
from memarena.viewer.cache_file import users_caches
from memarena.viewer.export import LIMIT, export
from memarena.viewer.found_runs import find_runs
from memarena.viewer.security import Door, kept_token
from memarena.viewer.server import make_app
from memarena.viewer.serving import serve

PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: one that is free.")]
HostOption = Annotated[str, typer.Option(help="Address to listen on; another than loopback opens it to the network.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open it in the browser.")]


def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs, or folders that hold some.")],
    port: PortOption = 0,
    host: HostOption = "127.0.0.1",
    open_: OpenOption = False,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Keep the token in this file, made if missing: with --port, links outlive a restart."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write pages as files to a new folder, and end.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="With --export: questions of each run that get a page.")] = LIMIT,
    gold: Annotated[
        bool, typer.Option("--gold", help="With --export: with right answers and judges' reasons.")
    ] = False,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Look at runs in a browser: grid, questions, prompts with their evidence, charts, progress.

    Prints the address to open and serves it until Ctrl-C.
    """
    if out is not None:
        count = export(runs, name, out, users_caches(), limit=limit, gold=gold, report_progress=_note)
        write_out(f"{out / 'index.html'}: {count:,} pages\n")
        return
    find_runs(runs)
    token = None if token_file is None else kept_token(token_file)
    serve_pages(lambda door: make_app(runs, name, door, users_caches()), host, port, open_=open_, token=token)


def serve_pages(
    make: Callable[[Door], web.Application], host: str, port: int, *, open_: bool, token: str | None = None
) -> None:
    """Serve an application, its address on standard output, until told to end."""

    def report_address(address: str) -> None:
        write_out(f"{address}\n")
        sys.stdout.flush()
        if open_:
            typer.launch(address)

    asyncio.run(serve(make, host, port, report_address, token))


def _note(line: str) -> None:
    write_err(f"{line}\n")
