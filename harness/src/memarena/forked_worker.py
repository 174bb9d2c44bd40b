"""A part of a long computation in a second process, which sees all that this one has read without being sent it.

A process pool of the standard library does not do: leaving its block waits until the work is done (an interrupt after
1 s of 8 ended after 8 s), and its worker outlives a parent that is killed, as it holds the reading end of its own pipe.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

from memarena_dataset.errors import MemArenaError

T = TypeVar("T")


class ForkedWorkerError(MemArenaError):
    """The second process ended before its part was done; the message is one line."""


def can_fork() -> bool:
    """Whether a second process may be forked and has a core: not forked threads, whose locks it would inherit."""
    return sys.platform == "linux" and threading.active_count() == 1 and len(os.sched_getaffinity(0)) > 1


@contextmanager
def forked(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Begin ``work`` in a forked process; what is yielded waits for its result, or raises what it raised.

    The result is pickled on its way back. The process ends with the ``with`` block, however that ends.
    """
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, receiving, sending), daemon=True)
    process.start()
    sending.close()  # so that the end of the process is the end of the pipe

    def result() -> T:
        try:
            done, said = receiving.recv()
        except EOFError:
            process.join()
            raise ForkedWorkerError(
                f"scoring: the second process ended with exit code {process.exitcode} before its part was done"
            ) from None
        if not done:
            raise said
        found: T = said
        return found

    try:
        yield result
    finally:
        process.kill()
        process.join()
        receiving.close()


def _work(work: Callable[[], object], receiving: Connection, sending: Connection) -> None:
    receiving.close()  # the fork's own copy: with it open, sending to a parent that was killed would wait for ever
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too, and ends this process
    try:
        said: tuple[bool, object] = (True, work())
    except Exception as error:  # noqa: BLE001 (raised again where the result is asked for)
        error.add_note(f"In the second process:\n{''.join(traceback.format_tb(error.__traceback__))}")
        said = (False, error)
    sending.send(said)
