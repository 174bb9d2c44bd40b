"""Remembers SIGINT and SIGTERM, since Python drops a KeyboardInterrupt that is raised inside a library's callback."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class StopSignals:
    """Whether a signal asked the run to stop."""

    requested: bool = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal came, also if the first one was lost on its way."""
        if self.requested:
            raise KeyboardInterrupt


@contextmanager
def remembered_signals() -> Iterator[StopSignals]:
    """Note signals that have a handler in Python and pass them on to it; other threads than the main one note none."""
    stop = StopSignals()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    handlers = {number: signal.getsignal(number) for number in _NUMBERS}

    def note(number: int, frame: FrameType | None) -> None:
        stop.requested = True
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    numbers = [number for number in _NUMBERS if callable(handlers[number])]
    for number in numbers:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        for number in numbers:
            signal.signal(number, handlers[number])
