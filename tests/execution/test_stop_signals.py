"""Tests stop signals: one that a library swallowed still stops the run, and other threads set no handler."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from memarena.execution.stop_signals import remembered_signals


@pytest.fixture(autouse=True)
def interrupt_handler() -> Iterator[None]:
    """Python's own SIGINT handler, even if these tests run in a background job, where the shell ignores SIGINT."""
    old_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old_handler)


class Swallows:
    """Raises in ``__del__``, where Python prints the exception and drops it, as in many callbacks of libraries."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the handler runs between two instructions
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_was_swallowed_is_raised_at_the_next_check() -> None:
    with remembered_signals() as stop:
        stop.check()
        swallows = Swallows()
        del swallows
        with pytest.raises(KeyboardInterrupt):
            stop.check()


def test_an_interrupt_is_raised_at_once_and_handlers_are_restored() -> None:
    old_handler = signal.getsignal(signal.SIGINT)
    with remembered_signals() as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
    assert signal.getsignal(signal.SIGINT) is old_handler


def test_a_signal_without_a_handler_keeps_its_default() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with remembered_signals():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_another_thread_changes_no_handler() -> None:
    handlers = []

    def look() -> None:
        with remembered_signals():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
