"""Runs parts of a long computation in forked processes, which share this process's data without pickling it.

A process pool of the standard library does not fit: leaving its block waits until the work is done (an interrupt after
1 s of 8 ended after 8 s), and its worker outlives a parent that is killed, as it holds the reading end of its own pipe.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import TypeVar, cast

from memarena_dataset.errors import MemArenaError

T = TypeVar("T")
Outcome = tuple[bool, object]
"""(whether the work succeeded, its result or its exception)."""


class ForkedWorkerError(MemArenaError):
    """A worker process ended before its part was done; the message is one line."""


def can_fork() -> bool:
    """Whether a second process may be forked and has a core: not if there are threads, whose locks it would inherit.

    Nor from one of our workers, since another worker uses the second core.
    """
    return (
        sys.platform == "linux"
        and threading.active_count() == 1
        and len(os.sched_getaffinity(0)) > 1
        and not multiprocessing.current_process().daemon
    )


@contextmanager
def forked(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Begin ``work`` in a forked process; yield a function that waits for its result, or raises its exception.

    The result is pickled. The process is killed at the end of the ``with`` block, however that ends.
    """
    with forked_each(lambda _: work(), 1) as results:
        yield lambda: next(results)


@contextmanager
def forked_each(work: Callable[[int], T], count: int, processes: int = 2) -> Iterator[Iterator[T]]:
    """Call ``work`` with 0 to ``count`` - 1 in forked processes, each of which takes the next number when it is done.

    Yields an iterator over the results in the order of the numbers; it raises the exception of a call that failed.
    Results are pickled; the processes are killed at the end of the ``with`` block, however that ends.
    """
    context = multiprocessing.get_context("fork")
    workers: dict[Connection, ForkProcess] = {}
    with ExitStack() as stack:
        for _ in range(min(processes, count)):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(work, theirs, [ours, *workers]), daemon=True)
            process.start()
            theirs.close()
            workers[ours] = process
            stack.callback(_end, process, ours)
        yield _in_order(workers, count)


def _in_order(workers: Mapping[Connection, ForkProcess], count: int) -> Iterator[T]:
    """Begin the work at once; return an iterator over the results, which waits for each."""
    numbers = iter(range(count))
    busy: dict[Connection, int] = {}

    def assign(connection: Connection) -> None:
        number = next(numbers, None)
        if number is not None:
            busy[connection] = number
            with suppress(BrokenPipeError):  # it has ended, which _received reports
                connection.send(number)

    def results() -> Iterator[T]:
        outcomes: dict[int, Outcome] = {}
        for number in range(count):
            while number not in outcomes:
                for ready in wait(list(busy)):
                    connection = cast(Connection, ready)
                    outcomes[busy.pop(connection)] = _received(workers[connection], connection)
                    assign(connection)
            yield cast(T, _result(outcomes.pop(number)))

    for connection in workers:
        assign(connection)
    return results()


def _received(process: ForkProcess, connection: Connection) -> Outcome:
    try:
        return cast(Outcome, connection.recv())
    except (EOFError, ConnectionResetError):
        process.join()
        raise ForkedWorkerError(
            f"a worker process ended with exit code {process.exitcode} before its part was done"
        ) from None


def _result(outcome: Outcome) -> object:
    succeeded, value = outcome
    if not succeeded:
        raise cast(Exception, value)
    return value


def _end(process: ForkProcess, connection: Connection) -> None:
    process.kill()
    process.join()
    connection.close()


# ------------------------------------------------------------------ the worker's side


def _serve(work: Callable[[int], object], connection: Connection, of_parent: Sequence[Connection]) -> None:
    for inherited in of_parent:  # with a copy of the parent's end of the pipe, its death would go unnoticed
        inherited.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError):  # the parent is gone
        while True:
            connection.send(_outcome(partial(work, connection.recv())))


def _outcome(work: Callable[[], object]) -> Outcome:
    try:
        return True, work()
    except Exception as error:  # noqa: BLE001 (raised again where the result is asked for)
        error.add_note(f"In a worker process:\n{''.join(traceback.format_tb(error.__traceback__))}")
        return False, error
