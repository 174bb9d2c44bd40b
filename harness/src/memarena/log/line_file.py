"""Reads and appends to a file of lines that only grows, and that several processes may write at once.

Appended lines are on disk when the call returns. A process killed in the middle of a line leaves a part of it, which
the next writer ends with a line break, so that no other line is damaged. People's reviews and labels are such files,
which several viewers may write at the same time.
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
# A letter or digit of any script, then letters, digits, "_", blanks, ".", "@" and "-".
_NAME = re.compile(r"[^\W_][\w .@-]{0,59}")


class LineFile:
    """Reads the lines of a file as they are written, and appends lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        """Number of lines read so far, including blank lines."""
        self._read_bytes = 0

    def new_lines(self) -> list[tuple[int, bytes]]:
        """Return the lines written since the last call that are not blank, each with its number from 1. Raises OSError.

        Empty if there is no file.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._read_bytes)
                new = file.read()
        except FileNotFoundError:
            return []
        # The last line may be incomplete: it is read once its line break is written.
        whole = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        numbered = list(enumerate(whole.splitlines(), self.lines + 1))
        self.lines += len(numbered)
        return [(number, line) for number, line in numbered if line.strip()]

    @contextmanager
    def appending(self) -> Iterator[Callable[[Sequence[str]], None]]:
        """Lock out other writers; within, read :meth:`new_lines`, then write lines. Raises OSError."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

        def append(lines: Sequence[str]) -> None:
            # More than complete lines: a killed writer left a part of a line.
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
    """Return the current time as text of fixed length, so that the order of texts is the order of times."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def is_name(text: str) -> bool:
    """Whether a text is valid as a writer's name; NAME_EXPECTED states what is expected."""
    return _NAME.fullmatch(text) is not None
