"""Prints output of commands and CSV cells safely: text of backends, servers or data sets cannot control a terminal."""

from __future__ import annotations

import io
import os
import re
import sys

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, which a terminal executes, marks that reverse the order of characters, and half surrogates.

Tabulators and line feeds stay.
"""
_FORMULA = re.compile(r"\A\s*[=+\-@\t\r]")
"""Text that a spreadsheet takes for the beginning of a formula (OWASP, CSV injection)."""


def open_standard_streams() -> None:
    """Open standard input, output and error on the null device if a command was started with them closed (``>&-``).

    Otherwise the next file to be opened gets their number, and what a child prints goes into it: a log, for example.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            # A question mark in place of a character that the terminal's encoding lacks, never an error.
            stream.reconfigure(errors="replace")


def printable(text: str) -> str:
    """Return the text with U+FFFD for each character that a terminal would execute or hide."""
    return _UNPRINTABLE.sub("\ufffd", text)


def write_out(text: str) -> None:
    """Write to standard output, printable."""
    sys.stdout.write(printable(text))


def write_err(text: str) -> None:
    """Write to standard error, printable."""
    sys.stderr.write(printable(text))


def csv_cell(value: object) -> object:
    """Return the value of a CSV cell: text is made printable, and gets an apostrophe if it looks like a formula."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(value) else text


def note(line: str) -> None:
    """Write a line to standard error, printable."""
    write_err(f"{line}\n")


def echo(line: str, *, err: bool = False) -> None:
    """Write a line to standard output or error, printable."""
    (write_err if err else write_out)(f"{line}\n")
