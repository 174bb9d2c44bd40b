"""What commands print, and cells of CSV files: no text of a backend, a server or a data set acts on who reads it."""

from __future__ import annotations

import re
import sys

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, which a terminal executes, marks that turn the order of characters round, and half characters.

Tabulators and line feeds stay.
"""
_FORMULA = re.compile(r"\A\s*[=+\-@\t\r]")
"""What a spreadsheet takes for the beginning of a formula (OWASP, CSV injection)."""


def printable(text: str) -> str:
    """The text with U+FFFD for each character that a terminal would execute or hide."""
    return _UNPRINTABLE.sub("\ufffd", text)


def write_out(text: str) -> None:
    """Write to standard output, printable."""
    sys.stdout.write(printable(text))


def write_err(text: str) -> None:
    """Write to standard error, printable."""
    sys.stderr.write(printable(text))


def csv_cell(value: object) -> object:
    """A value of a CSV cell: text is printable, and an apostrophe before it keeps a spreadsheet from computing it."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(value) else text


def echo(line: str, *, err: bool = False) -> None:
    """Write a line to standard output or error, printable."""
    (write_err if err else write_out)(f"{line}\n")
