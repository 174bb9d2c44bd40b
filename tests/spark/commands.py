"""Command lines run in this process, and how bad input has to look."""

from __future__ import annotations

from collections.abc import Callable

Invoke = Callable[..., "Done"]


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def one_line(done: Done, *words: str) -> None:
    """Bad input: exit code 2, one line on standard error that holds the words, no trace."""
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err
