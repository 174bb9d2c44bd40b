"""A signal that a library swallowed still stops the run; outside the main thread nothing is touched."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from memarena.execution.stop_signals import remembered_signals


@pytest.fixture(autouse=True)
def interrupt_handler() -> Iterator[None]:
    """Python's own handler, also where these tests run in the background of a shell, which ignores SIGINT there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Swallows:
    """Python prints and drops what is raised while an object is being deleted, as it does in many callbacks."""

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


def test_an_interrupt_is_raised_at_once_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with remembered_signals() as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_without_a_handler_keeps_its_default() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with remembered_signals():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_another_thread_touches_no_handler() -> None:
    seen = []

    def look() -> None:
        with remembered_signals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
