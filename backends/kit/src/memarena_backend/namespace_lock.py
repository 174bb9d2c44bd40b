"""Locks namespaces for calls: either one Ingest, Forget or Reset, or any number of searches at the same time.

A namespace is the memory of one person. Without the lock a search could see half a day.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memarena_backend.calls import Call
from memarena_backend.errors import aborted, unavailable

ABANDONED_WAIT_S = 5.0
"""Seconds that a call waits for the end of a pending call whose client has gone."""


@dataclass(slots=True)
class _Pending:
    alone: Call | None = None
    shared: list[Call] = field(default_factory=list)

    def blockers(self, *, of_alone: bool) -> list[Call]:
        others = [self.alone] if self.alone is not None else []
        return others + self.shared if of_alone else others


class Gate:
    """Admits calls to namespaces; refuses with ABORTED those that the contract does not allow to overlap (GEN-6).

    A call whose client has gone, but which has not ended yet, is not a reason to refuse: the next call waits for it, so
    that a client can replay a cancelled Ingest at once.
    """

    def __init__(self, max_namespaces: int | None = None) -> None:
        self._max_namespaces = max_namespaces
        self._changed = threading.Condition()
        self._pending: dict[str, _Pending] = {}

    @contextmanager
    def alone(self, namespace: str, call: Call) -> Iterator[None]:
        """Run as the only call on the namespace."""
        pending = self._enter(namespace, call, alone=True)
        try:
            yield
        finally:
            with self._changed:
                pending.alone = None
                self._leave(namespace, pending)

    @contextmanager
    def shared(self, namespace: str, call: Call) -> Iterator[None]:
        """Run while other searches of the namespace may run too."""
        pending = self._enter(namespace, call, alone=False)
        try:
            yield
        finally:
            with self._changed:
                pending.shared.remove(call)
                self._leave(namespace, pending)

    def _enter(self, namespace: str, call: Call, *, alone: bool) -> _Pending:
        with self._changed:
            self._await_abandoned(namespace, alone=alone)
            pending = self._pending.get(namespace)
            if pending is None:
                if self._max_namespaces is not None and len(self._pending) >= self._max_namespaces:
                    raise unavailable(f"{self._max_namespaces} namespaces are being worked on; no more are possible")
                pending = self._pending[namespace] = _Pending()
            if alone:
                pending.alone = call
            else:
                pending.shared.append(call)
            return pending

    def _await_abandoned(self, namespace: str, *, alone: bool) -> None:
        def blockers() -> list[Call]:
            pending = self._pending.get(namespace)
            return [] if pending is None else pending.blockers(of_alone=alone)

        def settled() -> bool:
            return not blockers() or any(blocker.is_active() for blocker in blockers())

        self._changed.wait_for(settled, timeout=ABANDONED_WAIT_S)
        if blockers():
            raise aborted("another call on the namespace is pending")

    def _leave(self, namespace: str, pending: _Pending) -> None:
        if pending.alone is None and not pending.shared:
            del self._pending[namespace]
        self._changed.notify_all()
