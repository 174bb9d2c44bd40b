"""A file of lines that only ever grows, written by several processes at once.

What is appended is on disk when the call returns. A process killed in the middle of a line leaves a piece of it, which
the next writer ends, so that it spoils no other line.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

NAME_EXPECTED = "expected 1 to 60 letters, digits, blanks or . @ - _; the first a letter or digit"
_NAME = re.compile(r"[^\W_][\w .@-]{0,59}")


class LineFile:
    """Lines read so far from a file, and more of them as others write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        """Lines read so far, blank ones too."""
        self._read_bytes = 0

    def new_lines(self) -> list[tuple[int, bytes]]:
        """Lines written since the last call that are not blank, each with its number from 1. Raises OSError.

        None where there is no file.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._read_bytes)
                new = file.read()
        except FileNotFoundError:
            return []
        # The last line may be in the middle of being written: it is read when it has its end.
        whole = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        numbered = list(enumerate(whole.splitlines(), self.lines + 1))
        self.lines += len(numbered)
        return [(number, line) for number, line in numbered if line.strip()]

    @contextmanager
    def appending(self) -> Iterator[Callable[[Sequence[str]], None]]:
        """Keep other writers out; read :meth:`new_lines` inside, then write lines. Raises OSError."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

        def append(lines: Sequence[str]) -> None:
            torn = os.lseek(file, 0, os.SEEK_END) > self._read_bytes
            content = (("\n" if torn else "") + "".join(f"{line}\n" for line in lines)).encode()
            while content:
                content = content[os.write(file, content) :]
            os.fsync(file)

        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield append
        finally:
            os.close(file)


def utc_now() -> str:
    """The time as a line keeps it: equal lengths, so that texts are in the order of time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def is_name(text: str) -> bool:
    """Whether a person who writes lines can be called so; else NAME_EXPECTED states what is expected."""
    return _NAME.fullmatch(text) is not None
