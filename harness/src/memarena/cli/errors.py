"""What a user sees of an error: one line on standard error, and the exit code."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from memarena.conformance import ConformanceError
from memarena.dataset.errors import DatasetError
from memarena.gateway import GatewayError
from memarena.judge import JudgeError
from memarena.latency import LatencyError
from memarena.log.store import LogError
from memarena.processes import ProcessError
from memarena.readers import ReaderError
from memarena.run.errors import InfraError, RunError
from memarena.scoring import ScoringError

EXIT_OK = 0
EXIT_FAULTS = 1
"""The command worked and found something wrong (``dataset validate``)."""
EXIT_BAD_INPUT = 2
EXIT_INCOMPLETE = 3
"""The run ended, and questions are left that failed for reasons of our own."""
EXIT_INTERRUPTED = 130

USER_ERRORS = (
    ConformanceError,
    DatasetError,
    GatewayError,
    JudgeError,
    LatencyError,
    LogError,
    ProcessError,
    ReaderError,
    RunError,
    ScoringError,
)


def fail(message: str, code: int = EXIT_BAD_INPUT) -> NoReturn:
    """Print ``error: message`` as one line and exit."""
    sys.stderr.write("error: " + " ".join(message.split()) + "\n")
    sys.exit(code)


def run_guarded(app: typer.Typer) -> None:
    """Run a command line; errors that are the user's to mend become one line and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        fail(f"{error.format_message()} (--help says what there is)")
    except InfraError as error:
        fail(str(error), EXIT_INCOMPLETE)
    except USER_ERRORS as error:
        fail(str(error))
    except OSError as error:
        # What no command foresaw of files and sockets: still one line, never a trace.
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else EXIT_OK)
