"""What a user sees of an error: one line on standard error, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import typer
from memarena.conformance import ConformanceError
from memarena.execution.errors import InfraError, RunError
from memarena.gateway import GatewayError
from memarena.judging import JudgeError
from memarena.log.store import LogError
from memarena.meters.readings import MeterError
from memarena.processes import ProcessError
from memarena.readers import ReaderError
from memarena.scoring import ScoringError
from memarena_dataset.errors import DatasetError
from memarena_dataset.printing import open_standard_streams, write_err, write_out
from typer.exceptions import TyperException

from memarena_spark.errors import Refusal, RefusedError, SparkError

EXIT_BAD_INPUT = 2
EXIT_INCOMPLETE = 3
EXIT_REFUSED = 4
"""The command worked, and its answer is no: refused, does not verify, does not agree. Not 1, which is what an error of
the program itself ends with: whoever takes refusals for an orderly end must not take that for one, too."""
EXIT_INTERRUPTED = 130

USER_ERRORS = (
    ConformanceError,
    DatasetError,
    GatewayError,
    JudgeError,
    LogError,
    MeterError,
    ProcessError,
    ReaderError,
    RunError,
    ScoringError,
    SparkError,
)


def fail(message: str, code: int = EXIT_BAD_INPUT) -> NoReturn:
    """Print ``error: message`` as one line and exit."""
    write_err("error: " + " ".join(message.split()) + "\n")
    sys.exit(code)


def print_refusals(refusals: Sequence[Refusal]) -> None:
    """One line per reason, and what to do about it below."""
    for refusal in refusals:
        write_out(f"refused  {refusal.code}: {refusal.reason}\n         do: {refusal.remedy}\n")
    sys.stdout.flush()


def run_guarded(app: typer.Typer) -> None:
    """Run a command line; refusals are listed with exit code 4, bad input is one line with exit code 2."""
    open_standard_streams()
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        fail(f"{error.format_message()} (--help says what there is)")
    except RefusedError as error:
        print_refusals(error.refusals)
        sys.exit(EXIT_REFUSED)
    except InfraError as error:
        fail(str(error), EXIT_INCOMPLETE)
    except USER_ERRORS as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
