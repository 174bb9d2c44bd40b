"""Defines a sound backend, of which broken ones replace a part: it has ANSWER, PROVENANCE, TIME_TRAVEL and FORGET.

It passes every check that applies to it, so a check that fails for a broken backend (``broken_*.py``) fails for its
defect. It is the kit's own server with a memory that is easy to break: a search for shared words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from grpc_health.v1 import health, health_pb2
from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    Item,
    Limits,
    Memory,
    Notice,
    OptionSpec,
    Query,
    SearchResult,
    fit_ranked,
)
from memarena_backend import server as kit_server
from memarena_backend.engine import Engine
from memarena_backend.servicer import Servicer
from memarena_backend.store import DayStore
from memarena_backend.transport import SERVICE

WORD = re.compile(r"\w+")


class SoundMemory(Memory):
    """Returns every turn and event that shares a word with the question, unchanged, latest day last."""

    def __init__(self) -> None:
        self.days: dict[str, list[Day]] = {}

    def describe(self) -> Description:
        return Description(
            name="sound",
            version="1",
            capabilities=frozenset(
                {Capability.ANSWER, Capability.PROVENANCE, Capability.TIME_TRAVEL, Capability.FORGET}
            ),
            options=(OptionSpec("depth", "Nothing; it is here to be sent.", "usual"),),
            limits=Limits(max_items=100),
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        self.days.setdefault(namespace, []).append(day)
        return ()

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        self.days[namespace] = list(days)

    def searched(self, namespace: str, query: Query) -> list[Day]:
        """Return the days up to the question's as_of_day."""
        return [day for day in self.days.get(namespace, []) if day.index <= query.as_of_day]

    def matches(self, namespace: str, query: Query) -> list[Item]:
        """Return the turns and events that share a word with the question, as items."""
        query_words = set(WORD.findall(query.text.lower()))
        return [
            item
            for day in self.searched(namespace, query)
            for item in items_of(day)
            if query_words & set(WORD.findall(item.text.lower()))
        ]

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        return fit_ranked(self.matches(namespace, query), query.max_items, query.max_context_tokens)

    def forget(self, namespace: str) -> None:
        self.days.pop(namespace, None)


def items_of(day: Day) -> list[Item]:
    """Return the turns and events of a day as items."""
    reported = [
        Item(turn.text, 1.0, (session.session_id,), (turn.turn_id,), turn.said_at.isoformat())
        for session in day.sessions
        for turn in session.turns
        if turn.text
    ]
    return [*reported, *(Item(event.text, 1.0, (), (), event.happened_at.isoformat()) for event in day.events)]


@dataclass(frozen=True)
class Parts:
    """The classes that a backend is made of; a broken backend replaces one of them, some two.

    ``memory`` stores and searches, ``store`` keeps days on disk, ``engine`` applies the contract's rules to days and
    searches, ``servicer`` answers RPCs, and ``health`` and ``status`` are what its health service reports.
    """

    memory: type[SoundMemory] = SoundMemory
    store: type[DayStore] = DayStore
    engine: type[Engine] = Engine
    servicer: type[Servicer] = Servicer
    health: type[health.HealthServicer] = health.HealthServicer
    status: health_pb2.HealthCheckResponse.ServingStatus.ValueType = health_pb2.HealthCheckResponse.SERVING


class Served:
    """The parts behind gRPC on a free port, until :meth:`stop`."""

    def __init__(self, parts: Parts, data_dir: Path) -> None:
        self._parts, self._data_dir, self.address = parts, data_dir, "127.0.0.1:0"
        self._start()

    def restart(self) -> None:
        """Stop the server and serve the same data at the same address again."""
        self.stop()
        self._start()

    def _start(self) -> None:
        parts = self._parts
        with ExitStack() as opened:
            store = parts.store(self._data_dir)
            opened.callback(store.close)
            servicer = parts.servicer(parts.engine(parts.memory(), store))
            opened.callback(servicer.close)
            health_servicer = parts.health(experimental_non_blocking=True)
            self._server = kit_server._server(servicer, health_servicer, kit_server.Security())
            self.address = kit_server._bind(self._server, self.address, kit_server.Security())
            self._server.start()
            self._opened = opened.pop_all()
        for service in ("", SERVICE):
            health_servicer.set(service, parts.status)

    def stop(self) -> None:
        self._server.stop(0.1).wait()
        self._opened.close()
