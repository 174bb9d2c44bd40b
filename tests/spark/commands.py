"""Runs command lines in this process, and checks how bad input is reported."""

from __future__ import annotations

from collections.abc import Callable

Invoke = Callable[..., "Done"]


class Done:
    """Exit code, standard output and standard error of a command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def one_line(result: Done, *words: str) -> None:
    """Check that bad input gave exit code 2 and one line on standard error with these words, without a traceback."""
    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    for word in words:
        assert word in result.err
