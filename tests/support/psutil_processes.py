"""Questions to processes that may end at any moment: psutil raises for one that ends between two of its calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Tell whether a process has ended; a zombie has."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def command_lines_below(process: psutil.Process) -> Iterator[tuple[psutil.Process, Sequence[str]]]:
    """Yield the descendants of a process, each with its command line, without those that have ended."""
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # includes zombies
            yield child, child.cmdline()
