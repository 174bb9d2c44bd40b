"""``memarena run``: merges flags and a configuration, then does the run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from memarena_dataset.printing import echo, write_err
from memarena_dataset.programs import EXIT_INCOMPLETE, EXIT_INTERRUPTED

from memarena.cli.data_files import SCORING_FILES
from memarena.cli.progress import ProgressDisplay
from memarena.cli.records import command_of
from memarena.cli.run_config import run_settings
from memarena.cli.run_flags import RunFlags
from memarena.client.backend import Security
from memarena.configs import named_configurations
from memarena.execution.backends.isolation import hide_arguments
from memarena.execution.display import Display
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.reproduction.tables import paper_tables

CELL_TOKEN_CHARS = 16
"""Shortest token accepted for a cell: whoever has it can call the run's models."""


def _run(flags: RunFlags) -> None:
    """Stream a data set to memory backends, ask its questions, and log everything.

    NAME is a configuration that comes with the program, such as an ablation
    of the paper; flags override what it says. Every pair of a backend and a
    reader, with one seed, is a cell of the run.

    Examples:
      memarena run --dataset DIR --backend bm25 --reader extractive --out R
      memarena run main-grid --dataset DIR --reader http://HOST:8000/v1 --out R
      memarena run --out R --resume

    The API key of a reader is taken from MEMARENA_READER_API_KEY. For the
    other models there are MEMARENA_EMBEDDER_API_KEY,
    MEMARENA_EXTRACTOR_API_KEY and MEMARENA_RERANKER_API_KEY.
    MEMARENA_CELL_TOKEN is the key that a memory's own server sends to the
    gateway, where that server is configured once.
    """
    if flags.list_all:
        echo(listing())
        return
    if flags.out is None:
        raise RunError("--out: expected a folder for the run's log")
    config, configuration = run_settings(flags)
    if sys.platform == "linux":
        folders = [value for name in ("dataset", "cache") if isinstance(value := flags.settings.get(name), Path)]
        hide_arguments([*folders, flags.out, Path(flags.name) if flags.name else None])
    request = RunRequest(
        out=flags.out,
        config=config,
        resume=flags.resume,
        security=_security(flags.tls_ca, flags.bearer_token_file),
        reader_api_key=os.environ.get("MEMARENA_READER_API_KEY"),
        cell_token=cell_token(),
        scoring_files=SCORING_FILES,
        configuration=configuration,
    )
    finish(run_request(request), flags.out)


run = command_of(RunFlags, _run)


def listing() -> str:
    """Return the list of named configurations: titles, needs, and the paper's tables that use their cells."""
    blocks = []
    for configuration in named_configurations():
        tables = [table.name for table in paper_tables() if configuration.name in table.configurations]
        paper_line = f"  memarena reproduce: {', '.join(tables)}" if tables else "  no table of the paper"
        lines = [configuration.name, f"  {configuration.title}", paper_line]
        if configuration.needs:
            lines.append(f"  needs: {', '.join(f'--{role}' for role in configuration.needs)}")
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def run_request(request: RunRequest, display: Display | None = None) -> RunOutcome:
    """Do a run with progress on standard error (or ``display``); SIGTERM acts like Ctrl-C."""
    with sigterm_as_interrupt():
        return execute(request, display or ProgressDisplay())


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM within the context."""
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def finish(outcome: RunOutcome, out: Path) -> None:
    """Print how the run ended and where its log is; exit with its code unless it is complete."""
    say = f"{outcome.reason}: {outcome.left} questions left" if outcome.left else outcome.reason
    write_err(f"{say}; log in {out}\n")
    if outcome.reason == "interrupted":
        write_err(f"resume with: memarena run --out {out} --resume\n")
        sys.exit(EXIT_INTERRUPTED)
    if outcome.left:
        write_err(
            "some questions had infrastructure failures, or their cell was interrupted; "
            f"ask them again with: memarena run --out {out} --resume\n"
        )
        sys.exit(EXIT_INCOMPLETE)
    if outcome.unread_cells:
        write_err(
            f"warning: the reader finds no context or no question in the backend's own prompt in "
            f"{len(outcome.unread_cells)} of {outcome.cells} cells, which have no headline: use another reader, "
            "or --central-reading\n"
        )
    if outcome.failed_cells:
        write_err(
            f"warning: the backend failed every question of {len(outcome.failed_cells)} of {outcome.cells} cells; "
            f"the causes: memarena report {out}\n"
        )
    for line in outcome.non_answers:
        sys.stderr.write(
            f"warning: {line}; they are no answers of the memory: --max-answer-tokens gives more room, "
            "--reader-thinking off or a budget of its own keeps reasoning apart\n"
        )
    if outcome.unread_cells or outcome.failed_cells:
        sys.exit(EXIT_INCOMPLETE)


def cell_token() -> str | None:
    """Return the token in MEMARENA_CELL_TOKEN, None if unset. Raises RunError if it is too short or not printable."""
    token = os.environ.get("MEMARENA_CELL_TOKEN") or None
    valid = token is None or (len(token) >= CELL_TOKEN_CHARS and all("!" <= character <= "~" for character in token))
    if not valid:
        raise RunError(
            f"MEMARENA_CELL_TOKEN: expected at least {CELL_TOKEN_CHARS} printable ASCII characters, no space"
        )
    return token


def _security(tls_ca: Path | None, bearer_token_file: Path | None) -> Security:
    if tls_ca is not None and not tls_ca.is_file():
        raise RunError(f"--tls-ca {tls_ca}: no such file")
    token = None
    if bearer_token_file is not None:
        try:
            token = bearer_token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"--bearer-token-file {bearer_token_file}: cannot be read: {error}") from error
        if not token or not (token.isascii() and token.isprintable()):
            raise RunError(f"--bearer-token-file {bearer_token_file}: expected one line of printable ASCII")
    return Security(tls_ca=tls_ca, bearer_token=token)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
