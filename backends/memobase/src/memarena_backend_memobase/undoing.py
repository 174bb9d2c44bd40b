"""Undoes a day that was not committed: deletes what it added on the server, and restores what it changed.

A day must have effect completely or not at all, and the Memobase server has no transaction over a day.
"""

from __future__ import annotations

import time

from memarena_backend import Call, failed_precondition, unavailable

from memarena_backend_memobase.journal import Holding
from memarena_backend_memobase.server import Server, Slot

_POLL_S = 0.1
_PATIENCE_S = 5.0
"""How long one call waits for a flush that is still under way before it ends with UNAVAILABLE, to be retried."""


def undo(server: Server, user: str, committed: Holding, lasts_until_s: float, call: Call) -> Holding:
    """Restore on the server the state after the last committed day; return that state with the server's current ids.

    ``lasts_until_s`` is the Unix time after which no flush of the interrupted day can still be under way. Raises
    CallError: UNAVAILABLE while a flush is under way, FAILED_PRECONDITION if the state cannot be restored.
    """
    _await_flushes(server, user, lasts_until_s, call)
    server.drop_blobs(user)
    for event in server.events(user):
        if event.id not in committed.events:
            server.delete_event(user, event.id)
    now = {slot.id: slot for slot in server.profile(user)}
    for name in now.keys() - committed.slots.keys():
        server.delete_slot(user, name)
    slots = {}
    for name, slot in committed.slots.items():
        before = Slot(id=name, content=slot.content, attributes=slot.attributes)
        if name not in now:
            slots[server.add_slot(user, slot.content, slot.attributes)] = slot
        else:
            slots[name] = slot
            if now[name] != before:
                server.write_slot(user, before)
    restored = committed.model_copy(update={"slots": slots})
    check_holding(server, user, restored)
    return restored


def check_holding(server: Server, user: str, expected: Holding) -> None:
    """Raise CallError FAILED_PRECONDITION unless the server holds exactly the ``expected`` slots and events."""
    slots = {slot.id: slot.content for slot in server.profile(user)}
    events = {event.id for event in server.events(user)}
    if slots != {name: slot.content for name, slot in expected.slots.items()} or events != set(expected.events):
        raise failed_precondition(
            "the Memobase server does not hold what was committed (was its database changed or replaced?); "
            "Reset the namespace and ingest it again"
        )


def _await_flushes(server: Server, user: str, lasts_until_s: float, call: Call) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while server.buffered(user, "processing") and time.time() < lasts_until_s:
        call.check()
        if time.monotonic() > give_up:
            raise unavailable("a flush of an interrupted day is still under way on the Memobase server")
        time.sleep(_POLL_S)
