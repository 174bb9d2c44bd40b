"""Runs a backend whose defect shows when its process ends: ``python -m tests.conformance.broken_processes NAME …``.

Other broken backends run in the process of the test; a lost day or an unfinished Reset shows only after a real SIGKILL
and restart. Names: ``dies``, ``not-durable``, ``reset-not-durable``, ``reset-keeps-old-days``, else a sound backend.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from memarena_backend import Call, Day, Notice, run_backend
from memarena_backend.day_decoder import ReceivedDay
from memarena_backend.records import Role
from memarena_backend.store import DayStore

from tests.conformance.sound import SoundMemory


class Dies(SoundMemory):
    """Ends its process over a turn of an assistant."""

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        for session in day.sessions:
            if any(turn.speaker.role is Role.ASSISTANT for turn in session.turns):
                sys.stderr.write("terminate called after throwing an instance of 'std::out_of_range'\n")
                sys.stderr.flush()
                os._exit(134)
        return super().commit_day(namespace, day, call)


def hide_removed_namespaces(*, but_the_last_day: bool = False) -> None:
    """Keep namespaces on disk that were reset; only this process knows that they are gone, so a restart shows them.

    ``but_the_last_day``: their last day is deleted from the disk as well.
    """
    removed: set[str] = set()
    last_day, commit, remove = DayStore.last_day, DayStore.commit, DayStore.remove

    def hidden(self: DayStore, namespace: str) -> int | None:
        return None if namespace in removed else last_day(self, namespace)

    def remembered(self: DayStore, namespace: str) -> None:
        if but_the_last_day and namespace not in removed:
            last = last_day(self, namespace)
            with self._guarded() as db:
                db.execute("DELETE FROM days WHERE namespace = ? AND day_index = ?", (namespace, last))
        removed.add(namespace)

    def again(self: DayStore, received: ReceivedDay) -> None:
        if received.namespace in removed:
            remove(self, received.namespace)
            removed.discard(received.namespace)
        commit(self, received)

    DayStore.last_day = hidden  # type: ignore[method-assign]
    DayStore.commit = again  # type: ignore[method-assign]
    DayStore.remove = remembered  # type: ignore[method-assign]


if __name__ == "__main__":
    name = sys.argv.pop(1)
    if name == "not-durable":
        for path in Path(sys.argv[sys.argv.index("--data-dir") + 1]).iterdir():
            path.unlink()
    elif name == "reset-not-durable":
        hide_removed_namespaces()
    elif name == "reset-keeps-old-days":
        hide_removed_namespaces(but_the_last_day=True)
    sys.exit(run_backend(lambda _: Dies() if name == "dies" else SoundMemory()))
