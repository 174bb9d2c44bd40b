"""What a user sees of an error: one line on standard error, and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import typer
from memarena_dataset.printing import open_standard_streams, write_err
from typer.exceptions import TyperException

EXIT_OK = 0
EXIT_FAULTS = 1
"""The command worked and found something wrong (``dataset validate``)."""
EXIT_BAD_INPUT = 2
EXIT_INCOMPLETE = 3
"""The run ended, and questions are left open after infrastructure failures, or a backend failed all of a cell's."""
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141
"""The reader of standard output ended, as ``head`` does: the exit code of ``cat`` then, 128 plus SIGPIPE's number."""

USER_ERRORS = {
    "ConformanceError": "memarena.conformance.errors",
    "DatasetError": "memarena_dataset.errors",
    "GatewayError": "memarena.gateway.types",
    "JudgeError": "memarena.judging.errors",
    "LatencyError": "memarena.latency.errors",
    "LogError": "memarena.log.store",
    "ProcessError": "memarena.processes",
    "ReaderError": "memarena.readers.errors",
    "RunError": "memarena.execution.errors",
    "ScoringError": "memarena.scoring.errors",
    "SweepError": "memarena.sweep.errors",
    "TableError": "memarena.tables.errors",
    "ViewerError": "memarena.viewer.errors",
    "ForkedWorkerError": "memarena.forked_worker",
}
"""Errors that the user can fix, and the modules that define them; by name, so that no command imports all."""
INFRA_ERRORS = {"InfraError": "memarena.execution.errors"}


def raisable(names: Mapping[str, str]) -> tuple[type[Exception], ...]:
    """Those of the errors whose module is loaded: no other can have been raised."""
    return tuple(getattr(sys.modules[module], name) for name, module in names.items() if module in sys.modules)


def fail(message: str, code: int = EXIT_BAD_INPUT) -> NoReturn:
    """Print ``error: message`` as one line and exit."""
    write_err("error: " + " ".join(message.split()) + "\n")
    sys.exit(code)


def run_guarded(app: typer.Typer) -> None:
    """Run a command line; errors that the user can fix become one line and exit code 2."""
    open_standard_streams()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        fail(f"{_plain(error.format_message())} (--help says what there is)")
    except raisable(INFRA_ERRORS) as error:
        fail(str(error), EXIT_INCOMPLETE)
    except raisable(USER_ERRORS) as error:
        fail(str(error))
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            # rich's own way out, with the exit code of a command that found something wrong.
            sys.exit(EXIT_CLOSED_PIPE)
        raise
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            sys.exit(EXIT_CLOSED_PIPE)
        # Unforeseen errors of files and sockets: still one line, never a stack trace.
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else EXIT_OK)


_WORDS = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole number",
    "Input should be a valid number, unable to parse string as a number": "expected a number",
}


def _plain(message: str) -> str:
    """What the parser of flags says, in words of ours."""
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message


def _nobody_reads() -> bool:
    """Whether standard output is a closed pipe; then what it still holds is dropped, since Python would try again."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False
