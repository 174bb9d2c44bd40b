"""Ends the programs ``memarena``, ``masim`` and ``memarena-spark``: exit codes, and one line for an error."""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from memarena_dataset.errors import MemArenaError
from memarena_dataset.printing import open_standard_streams

EXIT_OK = 0
EXIT_FAULTS = 1
"""The command worked, and what it checked has faults (``dataset validate``)."""
EXIT_BAD_INPUT = 2
EXIT_INCOMPLETE = 3
"""The run ended, and questions are left open after infrastructure failures, or a backend failed all of a cell's."""
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141
"""The reader of standard output ended, as ``head`` does: the exit code of ``cat`` then, 128 plus SIGPIPE's number."""

_NOT_MAPPED = "failed to map segment"
"""Part of the linker's message on a library that it could not load for lack of memory."""


def run_guarded(app: typer.Typer) -> NoReturn:
    """Run a command line and exit; an error that the user can mend becomes one line and its exit code."""
    open_standard_streams()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        _end(MemArenaError(f"{_plain(error.format_message())} (--help says what there is)"))
    except MemArenaError as error:
        _end(error)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            # rich ends this way, with the exit code of a command that reports faults.
            sys.exit(EXIT_CLOSED_PIPE)
        raise
    except OSError as error:
        refused = _refusal_of_output()
        if isinstance(error, BrokenPipeError) and isinstance(refused, BrokenPipeError):
            sys.exit(EXIT_CLOSED_PIPE)
        # Unforeseen errors of files and sockets: still one line, never a stack trace.
        _end(MemArenaError(_reason(error)))
    except (MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and _NOT_MAPPED not in str(error):
            raise
        _end(MemArenaError("not enough memory for this process (ulimit -v states its limit)"))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else EXIT_OK)


def _end(error: MemArenaError) -> NoReturn:
    error.write()
    sys.exit(error.exit_code)


_WORDS = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole number",
    "Input should be a valid number, unable to parse string as a number": "expected a number",
}


def _plain(message: str) -> str:
    """Return a message of the flag parser in our own words."""
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message


def _reason(error: OSError) -> str:
    """Return an error of a file or socket as one line."""
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    try:
        os.getcwd()  # noqa: PTH109 (its error is what is asked for)
    except FileNotFoundError:
        return "the current folder was removed; change to one that is there"
    return f"cannot write: {error.strerror}" if error.errno == errno.ENOSPC else str(error)


def _refusal_of_output() -> OSError | None:
    """Return the error of flushing standard output (closed pipe, full disk), None if it works.

    On an error the buffered output goes to the null device, since Python would try to write it again at exit.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None
