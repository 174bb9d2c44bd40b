"""A backend that keeps turns in memory and fails on demand: ``faulty_backend.py FAULT [kit's arguments]``.

In every Nth Search since the process started:
    ``crash:N``         the process ends
    ``raise:N``         an exception
    ``own-raise:N``     an exception; the backend declares that it calls its own model
    ``slow:N``          sleeps five seconds
    ``term:N``          sends itself SIGTERM, as ``docker stop`` does, and sleeps a minute
    ``moody:N``         the process ends; after a restart it reports another version
``poison:WORD``         the process ends in every Search whose query contains the word
``crash-ingest:N``      the process ends in the Nth Ingest since the data directory was new
``amnesia:N``           like ``crash-ingest``, and its data are gone after a restart
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from memarena_backend import Call, Capability, Day, Description, Item, Memory, Notice, Query, SearchResult, run_backend

COUNTER = "ingests"
"""File of the data directory that counts Ingests (for ``moody`` starts) across restarts; ``amnesia`` spares it."""


class FaultyMemory(Memory):
    """Returns the last five turns of a namespace; fails by ``fault`` (see the module)."""

    def __init__(self, fault: str, data_dir: Path) -> None:
        self._fault, _, number = fault.partition(":")
        self._word = number
        self._every = int(number) if number.isdigit() else 0
        self._data_dir = data_dir
        self._searches = 0
        self._version: str | None = None
        self._texts: dict[str, list[str]] = {}

    def describe(self) -> Description:
        if self._fault == "moody":
            starts = self._data_dir / COUNTER
            if self._version is None:
                self._version = f"1.{starts.read_text() if starts.exists() else ''}"
                starts.write_text("again")
            return Description(name="faulty", version=self._version)
        own = {Capability.OWN_MODEL} if self._fault == "own-raise" else set()
        return Description(name="faulty", version="1", capabilities=frozenset(own))

    def commit_day(self, namespace: str, day: Day, call: Call) -> list[Notice]:
        if self._fault in {"crash-ingest", "amnesia"}:
            counter = self._data_dir / COUNTER
            count = int(counter.read_text()) + 1 if counter.exists() else 1
            counter.write_text(str(count))
            if count == self._every:
                os._exit(9)
        texts = self._texts.setdefault(namespace, [])
        texts += [turn.text for session in day.sessions for turn in session.turns]
        return []

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        self._searches += 1
        if self._fault == "poison" and self._word in query.text:
            os._exit(9)
        if self._every and self._searches % self._every == 0:
            if self._fault in {"crash", "moody"}:
                os._exit(9)
            if self._fault in {"raise", "own-raise"}:
                raise ValueError("the index is broken")
            if self._fault == "term":
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
            if self._fault == "slow":
                time.sleep(5)
        return SearchResult([Item(text=text, score=0.0) for text in self._texts[namespace][-5:]])

    def forget(self, namespace: str) -> None:
        self._texts.pop(namespace, None)


if __name__ == "__main__":
    FAULT = sys.argv[1]
    if FAULT.startswith("amnesia"):
        for path in Path(sys.argv[sys.argv.index("--data-dir") + 1]).iterdir():
            if path.name != COUNTER:
                path.unlink()
    sys.exit(run_backend(lambda data_dir: FaultyMemory(FAULT, data_dir), sys.argv[2:]))
