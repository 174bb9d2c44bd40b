"""Sends a day to the server and determines the results: which session led to which event and profile entry.

A flush can succeed without extracting anything, and the server then drops its input. So all results are checked, and
the state of the server is compared with that before the day.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memarena_backend import Call, Day, Notice, Participant, Session, failed_precondition, unavailable

from memarena_backend_memobase.chat import blobs_of
from memarena_backend_memobase.journal import Holding, KeptEvent, KeptSlot, Tally, joined
from memarena_backend_memobase.server import ALL, Extraction, Server, ServerFaultError, Slot, StoredEvent
from memarena_backend_memobase.settings import Flush

_log = logging.getLogger(__name__)

_MODEL_STATUS = re.compile(r"Error code: (\d{3})")
"""HTTP status of a model's server in a message of the Memobase server."""
_UNFIT = frozenset({400, 413, 422})
"""HTTP statuses by which the model's server rejects a prompt, such as one that is too long; other sessions may fit."""
_MISCONFIGURED = frozenset({401, 403, 404})
"""HTTP statuses of a wrong key, address or model: no session can succeed."""
_OF_MODELS = ("Error in llm_complete", "Error in get_embedding")
"""Words in the server's messages if a model failed."""
_OF_STORES = ("psycopg2", "sqlalchemy", "redis")
"""Words in the server's messages if a database failed."""


@dataclass
class _Bundle:
    """Sessions whose blobs are in the buffer together, and the results of their flush."""

    sessions: tuple[Session, ...]
    results: list[Extraction] = field(default_factory=list)
    failure: str = ""
    lines: int = 0
    """Number of searchable lines in its events."""

    def tally(self) -> Tally:
        """Count its sessions; all sessions of a flush count alike."""
        count = len(self.sessions)
        if self.failure:
            return Tally(sessions=count, failed=count)
        if all(result.empty for result in self.results):
            return Tally(sessions=count, empty=count)
        changed = any(result.add_profiles or result.update_profiles for result in self.results)
        return Tally(sessions=count, lineless=0 if self.lines else count, unchanged=0 if changed else count)


def take_in(
    server: Server, user: str, before: Holding, day: Day, flush: Flush, blob_bytes: int, call: Call
) -> tuple[Holding, list[Notice]]:
    """Have the server extract a day. Return what the server holds afterwards, and the notices of the day.

    ``before`` is what it held before the day. Raises CallError, without undoing anything.
    """
    bundles: list[_Bundle] = []
    for bundle in _bundles(day.sessions, flush):
        _extract(server, user, bundle, day.owner, blob_bytes, call)
        if bundle.failure:
            _log.warning("day %d: a flush failed: %s", day.index, bundle.failure)
            _drop_remains(server, user, before, bundles)
        if bundle.sessions:
            bundles.append(bundle)
    call.check()
    _expect_stable(server, user)
    events, slots = server.events(user), server.profile(user)
    _count_lines(bundles, events)
    holding = _holding(before, day.index, bundles, events, slots)
    _expect_findable(server, user, before, holding)
    return holding, [*_notices(day.index, bundles, holding.tally), *_changes(before, holding)]


def _bundles(sessions: Sequence[Session], flush: Flush) -> Iterator[_Bundle]:
    spoken = [session for session in sessions if any(turn.text.strip() for turn in session.turns)]
    if flush == "day":
        yield _Bundle(tuple(spoken))
    else:
        yield from (_Bundle((session,)) for session in spoken)


def _extract(server: Server, user: str, bundle: _Bundle, owner: Participant, blob_bytes: int, call: Call) -> None:
    try:
        for session in bundle.sessions:
            for blob in blobs_of(session, owner, blob_bytes):
                bundle.results += server.insert(user, blob, call)
        bundle.results += server.flush(user, call)
    except ServerFaultError as error:
        bundle.failure = _reason(error)


def _reason(fault: ServerFaultError) -> str:
    """Return why the sessions of a flush are lost. Raises CallError if the cause is not their content."""
    message = fault.message
    match = _MODEL_STATUS.search(message)
    status = int(match[1]) if match else None
    if any(words in message for words in _OF_MODELS):
        if status in _MISCONFIGURED:
            raise failed_precondition(f"the models refuse the Memobase server: {fault}") from fault
        if status not in _UNFIT:
            raise unavailable(f"a model of the Memobase server failed: {fault}") from fault
    elif any(words in message.lower() for words in _OF_STORES):
        raise unavailable(f"a store of the Memobase server failed: {fault}") from fault
    return str(fault)


def _drop_remains(server: Server, user: str, before: Holding, bundles: Iterable[_Bundle]) -> None:
    """Delete the blobs of a failed flush, and its event, which the server writes before the profile."""
    server.drop_blobs(user)
    expected = {result.event_id for bundle in bundles for result in bundle.results} | set(before.events)
    for event in server.events(user):
        if event.id not in expected:
            server.delete_event(user, event.id)


def _expect_stable(server: Server, user: str) -> None:
    for status in ("idle", "processing"):
        if blobs := server.buffered(user, status):
            raise unavailable(f"{blobs} blobs of the day are still {status} on the Memobase server after its flushes")


def _expect_findable(server: Server, user: str, before: Holding, after: Holding) -> None:
    """Raise CallError unless a search can return every new line.

    When its embedder fails, the server silently stores lines without a vector.
    """
    new = [line for name, event in after.events.items() if name not in before.events for line in event.lines]
    if not new:
        return
    try:
        # The threshold is below any cosine, so that all lines are returned.
        contents = {gist.gist_data.content for gist in server.search_gists(user, new[0], ALL, -2.0)}
    except ServerFaultError as error:
        raise unavailable(f"events cannot be searched (enable_event_embedding must be on): {error}") from error
    if lost := sum(line not in contents for line in new):
        raise unavailable(f"{lost} of {len(new)} new event lines were kept without an embedding and cannot be found")


def _count_lines(bundles: Iterable[_Bundle], events: Iterable[StoredEvent]) -> None:
    lines = {event.id: len(lines_of(event)) for event in events}
    for bundle in bundles:
        bundle.lines = sum(lines.get(result.event_id, 0) for result in bundle.results if result.event_id)


def lines_of(event: StoredEvent) -> tuple[str, ...]:
    """Return the lines of an event that the server makes searchable: those that begin with a dash."""
    lines = (line.strip() for line in (event.event_data.event_tip or "").split("\n"))
    return tuple(line for line in lines if line.startswith("-"))


def _holding(
    before: Holding, day: int, bundles: Sequence[_Bundle], events: Sequence[StoredEvent], slots: Iterable[Slot]
) -> Holding:
    """Return the server's content after a day, with the sessions from which each entry and event came."""
    by_event: dict[str, _Bundle] = {}
    by_slot: dict[str, tuple[tuple[str, ...], str]] = {
        name: (slot.sessions, slot.time) for name, slot in before.slots.items()
    }
    for bundle in bundles:
        ids, time = _ids(bundle), _time(bundle)
        for result in bundle.results:
            if result.event_id:
                by_event[result.event_id] = bundle
            # An entry that replaces others inherits their sessions.
            replaced = joined(*(by_slot.get(name, ((), ""))[0] for name in result.delete_profiles or ()))
            for name in (*(result.add_profiles or ()), *(result.update_profiles or ())):
                by_slot[name] = (joined(by_slot.get(name, ((), ""))[0], replaced, ids), time)
    kept_events = dict(before.events)
    for event in reversed(events):  # the server names the newest first
        if event.id not in kept_events:
            source = by_event.get(event.id)
            sessions, time = (_ids(source), _time(source)) if source else ((), "")
            kept_events[event.id] = KeptEvent(lines=lines_of(event), sessions=sessions, time=time)
    return Holding(
        day=day,
        slots={
            slot.id: KeptSlot(
                content=slot.content,
                attributes=slot.attributes,
                sessions=by_slot.get(slot.id, ((), ""))[0],
                time=by_slot.get(slot.id, ((), ""))[1],
            )
            for slot in slots
        },
        events=kept_events,
        tally=before.tally.plus(_tally(bundles)),
    )


def _ids(bundle: _Bundle) -> tuple[str, ...]:
    return tuple(session.session_id for session in bundle.sessions)


def _time(bundle: _Bundle) -> str:
    return bundle.sessions[-1].started_at.isoformat()


def _tally(bundles: Iterable[_Bundle]) -> Tally:
    total = Tally()
    for bundle in bundles:
        total = total.plus(bundle.tally())
    return total


def _changes(before: Holding, after: Holding) -> list[Notice]:
    """Return notices of how many events and profile entries the day added, changed or removed."""
    old, new = before.slots, after.slots
    events = len(after.events.keys() - before.events.keys())
    entries = len(new.keys() - old.keys())
    changed = sum(new[name].content != old[name].content for name in new.keys() & old.keys())
    return [
        Notice("memories_stored", f"{events} events and {entries} profile entries", events + entries),
        Notice("memories_changed", "profile entries with other content", changed),
        Notice("memories_removed", "profile entries that are gone", len(old.keys() - new.keys())),
    ]


def _notices(day: int, bundles: Sequence[_Bundle], so_far: Tally) -> list[Notice]:
    today = _tally(bundles)
    if not today.sessions:
        return []
    total = f"so far {so_far.empty} empty and {so_far.failed} failed of {so_far.sessions}"
    share = today.empty / today.sessions
    _log.info(
        "day %d: %d sessions given, %d empty (%.0f%%), %d failed; %s",
        *(day, today.sessions, today.empty, 100 * share, today.failed, total),
    )
    notices = [Notice("sessions_given", total, today.sessions)]
    if bare := today.empty + today.failed:
        message = f"{bare} of {today.sessions} sessions gave neither an event nor a profile entry"
        notices.append(Notice("extraction_empty", message, bare))
    if today.lineless:
        notices.append(
            Notice(
                "log_without_lines", "sessions whose log is no list, so that no line of it can be found", today.lineless
            )
        )
    if today.unchanged:
        notices.append(Notice("profile_unchanged", "sessions that gave an event and no profile entry", today.unchanged))
    if today.failed:
        reason = next(bundle.failure for bundle in bundles if bundle.failure)
        notices.append(Notice("sessions_failed", f"sessions lost, the first because {reason}", today.failed))
    return notices
