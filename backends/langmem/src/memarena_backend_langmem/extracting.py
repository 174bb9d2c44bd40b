"""Ingests a day: LangMem's manager extracts each session, and its changes are determined by comparing the store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langmem import create_memory_store_manager  # type: ignore[import-not-found]
from memarena_backend import Call, Day, Notice, Session

from memarena_backend_langmem.chat_model import Abandoned, CallCounts, GatewayModel, chat_model
from memarena_backend_langmem.conversation import Message, parts_of
from memarena_backend_langmem.memories import NAMESPACE, Memories, Source

_log = logging.getLogger(__name__)


@dataclass
class Tally:
    """Counts of a day's sessions, model calls and memories. See :meth:`notices` for their meaning."""

    sessions_given: int = 0  # words: a name of the file format
    calls: int = 0
    unusable: int = 0
    empty: int = 0
    failed: int = 0
    stored: int = 0
    changed: int = 0
    removed: int = 0

    def notices(self) -> Sequence[Notice]:
        """Return the counts as notices."""
        return (
            Notice("sessions_given", "sessions with text were given to LangMem", self.sessions_given),
            Notice("extraction_calls", "model calls were made", self.calls),
            Notice("extraction_unusable", "of these calls had no tool call that could be used", self.unusable),
            Notice("extraction_empty", "sessions changed nothing in the memory", self.empty),
            Notice(
                "sessions_failed",
                "sessions were given up: a prompt refused, no end of calls, or a fault of the library",
                self.failed,
            ),
            Notice("memories_stored", "memories were added", self.stored),
            Notice("memories_changed", "memories were rewritten", self.changed),
            Notice("memories_removed", "memories were removed", self.removed),
        )


def take_in(memories: Memories, day: Day, model: GatewayModel, call: Call) -> Sequence[Notice]:
    """Extract all sessions of a day into ``memories``, which must have an embedder; return the notices.

    Raises CallError if a model fails.
    """
    tally = Tally()
    # The library's defaults: it searches five memories that a session may change, and never removes any.
    manager = create_memory_store_manager(chat_model(model.ask), namespace=NAMESPACE, store=memories.store)
    for session in day.sessions:
        parts = parts_of(session)
        if not parts:
            continue
        tally.sessions_given += 1  # words: a name of the file format
        outcomes = [_extract(manager, memories, session, part, model, call, tally) for part in parts]
        tally.empty += not any(outcome.changed for outcome in outcomes)
        tally.failed += any(outcome.given_up for outcome in outcomes)
    return tally.notices()


@dataclass(frozen=True, slots=True)
class _Outcome:
    changed: bool
    given_up: bool


def _extract(
    manager: Any,
    memories: Memories,
    session: Session,
    part: list[Message],
    model: GatewayModel,
    call: Call,
    tally: Tally,
) -> _Outcome:
    """Extract a part of a session, update counts and sources; return whether it changed or was given up."""
    call.check()
    before = memories.contents()
    model.counts = CallCounts()
    given_up = False
    puts: list[dict[str, Any]] = []
    try:
        puts = manager.invoke({"messages": part})
    except Abandoned as abandoned:
        if abandoned.error is not None:
            raise abandoned.error from abandoned
        _log.warning("a session was given up: %s", abandoned.__cause__ or "no end of model calls")
        given_up = True
    except Exception as error:  # noqa: BLE001 (any error of the library on a reply ends only the session)
        memories.check_embedded()
        _log.warning("LangMem gave up a session: %s: %s", type(error).__name__, " ".join(str(error).split())[:300])
        given_up = True
    # The library silently loses a memory that could not be stored: it waits for its threads, not for their errors.
    memories.check_embedded()
    tally.calls += model.counts.calls
    tally.unusable += model.counts.unusable
    after = memories.contents()
    if lost := [put["key"] for put in puts if after.get(put["key"]) != put["value"]]:
        raise RuntimeError(f"{len(lost)} of {len(puts)} memories that LangMem wrote are not in its store")
    new = after.keys() - before.keys()
    changed = {key for key in after.keys() & before.keys() if after[key] != before[key]}
    removed = before.keys() - after.keys()
    tally.stored += len(new)
    tally.changed += len(changed)
    tally.removed += len(removed)
    time = session.started_at.isoformat()
    for key in new | changed:
        source = memories.sources.get(key)
        ids = (*source.session_ids, session.session_id) if source else (session.session_id,)
        memories.sources[key] = Source(tuple(dict.fromkeys(ids)), time)
    for key in removed:
        del memories.sources[key]
    return _Outcome(bool(new or changed or removed), given_up)
