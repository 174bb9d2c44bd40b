"""Audits the items returned for a life: the sources, times and names of each must be supported by its own text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.errors import BrokenError
from memarena.conformance.life import Entry, Life

_WORD = re.compile(r"\w+")
_DATE_CHARS = 10  # of 2025-01-04: an item may have a date as its time
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2}))?", re.ASCII)
_ROUNDING = timedelta(milliseconds=1)  # a store may keep milliseconds


class Audit:
    """Audits items by the words that occur once in a life. ``provenance``: sources must be named, not only right."""

    def __init__(self, life: Life, *, provenance: bool) -> None:
        self._life, self._provenance = life, provenance
        self._by_word: dict[str, list[Entry]] = {}
        for entry in life.entries:
            for word in {entry.fact.value.lower(), entry.fact.question.lower().rstrip("?")}:  # a long text has two
                self._by_word.setdefault(word, []).append(entry)
        # A word with combining marks is no single match of _WORD: its entry is recognised by the whole statement.
        self._others = [entry for entry in life.entries if not _WORD.fullmatch(entry.fact.value.lower())]
        self._sessions = {e.session.session_id: e.session for e in life.entries if e.session is not None}
        turns = [turn for session in self._sessions.values() for turn in session.turns]
        self._turns, self._empty = {turn.turn_id for turn in turns}, {turn.turn_id for turn in turns if not turn.text}
        self._events = {entry.event.event_id for entry in life.entries if entry.event is not None}
        people = {p.display_name for session in self._sessions.values() for p in session.participants}
        self._people = people | set(life.renamed)
        self._sound: set[bytes] = set()  # items that passed, so that none is checked twice

    def words_in(self, text: str) -> set[str]:
        """Return the words of a text that identify turns or events of the life."""
        return {word for word in _WORD.findall(text.lower()) if word in self._by_word}

    def check(self, items: Iterable[pb.MemoryItem]) -> None:
        """Raise BrokenError for an item that names a wrong source, time or person, or lacks its source."""
        for item in items:
            if not item.text or not math.isfinite(item.score):
                raise BrokenError(f"an item has the text {item.text[:60]!r} and the score {item.score}")
            if (key := item.SerializeToString(deterministic=True)) not in self._sound:
                self._check_sources(item)
                self._check_time(item)
                self._sound.add(key)

    def _entries_in(self, item: pb.MemoryItem) -> list[Entry]:
        """Return the entries of which an item contains a word, or, for entries without such a word, the text."""
        by_word = dict.fromkeys(entry for word in self.words_in(item.text) for entry in self._by_word[word])
        return [*by_word] + [entry for entry in self._others if entry.fact.statement in item.text]

    def _check_sources(self, item: pb.MemoryItem) -> None:
        """Raise BrokenError for a source that was never ingested, or of which the item's text holds no word."""
        what = f"the item {item.text[:60]!r}"
        for kind, named, known in (
            ("session", item.source_session_ids, self._life.session_ids),
            ("turn", item.source_turn_ids, self._turns),
            ("event", item.source_event_ids, self._events),
        ):
            if foreign := [each for each in named if each not in known]:
                raise BrokenError(f"{what} names the {kind} {foreign[0]!r}, which was never ingested")
        entries = self._entries_in(item)
        if not entries or item.derived:
            return
        ids = {entry.turn.turn_id for entry in entries if entry.turn is not None}
        ids |= {entry.event.event_id for entry in entries if entry.event is not None}
        session_ids = {entry.session.session_id for entry in entries if entry.session is not None}
        if unsupported := set(item.source_session_ids) - session_ids:
            raise BrokenError(
                f"{what} names {len(item.source_session_ids)} sessions and holds no word of {len(unsupported)} of "
                f"them, the first {min(unsupported)!r}"
            )
        if unsupported := {*item.source_turn_ids, *item.source_event_ids} - ids - self._empty:
            raise BrokenError(f"{what} names the turn or event {min(unsupported)!r}, of which it holds no word")
        whole_entries = [entry for entry in entries if entry.fact.statement in item.text]
        self._check_people(item, whole_entries)
        if self._provenance:
            self._check_every_turn_is_named(item, whole_entries)

    def _check_every_turn_is_named(self, item: pb.MemoryItem, entries: list[Entry]) -> None:
        """Raise BrokenError for a turn whose text the item contains, but its sources lack, unless it occurs twice."""
        twice = {entry.fact for entry in entries if sum(each.fact is entry.fact for each in entries) > 1}
        for entry in entries:
            if entry.turn is None or entry.session is None or entry.fact in twice:
                continue
            if entry.session.session_id not in item.source_session_ids:
                raise BrokenError(
                    f"the item {item.text[:60]!r} holds “{entry.fact.statement[:60]}” of the session "
                    f"{entry.session.session_id!r} and names {', '.join(item.source_session_ids) or 'no session'}"
                )
            alone = item.text == entry.fact.statement
            if (item.source_turn_ids or alone) and entry.turn.turn_id not in item.source_turn_ids:
                raise BrokenError(
                    f"the item {item.text[:60]!r} holds the turn {entry.turn.turn_id!r} and names "
                    f"{', '.join(item.source_turn_ids) or 'no turn'}"
                )

    def _check_people(self, item: pb.MemoryItem, entries: list[Entry]) -> None:
        """Raise BrokenError for a name in an item of a person who took no part, or who is not the turn's speaker."""
        sessions = [entry.session for entry in entries if entry.session is not None]
        if not sessions or len(sessions) != len(entries):
            return
        shown = {name for name in self._people if name in item.text}
        present = {p.display_name for session in sessions for p in session.participants}
        known_names = {*present, *(name for name in shown if any(name in entry.fact.statement for entry in entries))}
        if strange := shown - known_names:
            raise BrokenError(
                f"the item {item.text[:60]!r} names {min(strange)}, a name of no participant of its session"
            )
        turn, session = entries[0].turn, entries[0].session
        if len(entries) != 1 or turn is None or session is None:
            return
        speaker = next(p.display_name for p in session.participants if p.participant_id == turn.speaker_id)
        if turn.speaker_id in item.text and speaker not in shown:
            raise BrokenError(f"the item {item.text[:60]!r} names {speaker} by the id {turn.speaker_id!r}")
        if shown and speaker not in shown:
            raise BrokenError(f"the item {item.text[:60]!r} names {min(shown)}, and the speaker is {speaker}")

    def _check_time(self, item: pb.MemoryItem) -> None:
        """Raise BrokenError for a time that is malformed, or lies outside the session or event of the item's text."""
        what = f"the item {item.text[:60]!r}"
        for name in ("time", "valid_from", "valid_until"):
            reported = getattr(item, name)
            if reported and _TIME.fullmatch(reported) is None:
                raise BrokenError(f"{what}: {name} is {reported!r}, expected an RFC 3339 time with offset or a date")
        if item.valid_from and item.valid_until and _day_of(item.valid_until) < _day_of(item.valid_from):
            raise BrokenError(f"{what}: valid_until ({item.valid_until}) is before valid_from ({item.valid_from})")
        entries = self._entries_in(item)
        if not item.time or item.derived or not entries or len({_source(entry) for entry in entries}) > 1:
            return
        first, last = _span(entries[0])
        if len(item.time) == _DATE_CHARS:
            shown = date.fromisoformat(item.time)
            dates = [each.date() for at in (first, last) for each in (at, at.astimezone(UTC))]
            right = min(dates) <= shown <= max(dates)
        else:
            right = first - _ROUNDING <= datetime.fromisoformat(item.time.upper()) <= last + _ROUNDING
        if not right:
            raise BrokenError(f"{what} has the time {item.time}; its source lies between {first.isoformat()} and "
                              f"{last.isoformat()}")  # fmt: skip


def _day_of(text: str) -> date:
    return datetime.fromisoformat(text.upper()).astimezone(UTC).date()


def _source(entry: Entry) -> str:
    if entry.session is not None:
        return entry.session.session_id
    return entry.event.event_id if entry.event is not None else ""


def _span(entry: Entry) -> tuple[datetime, datetime]:
    """Return the first and the last moment that an item of the entry may have as its time."""
    if entry.session is None:
        assert entry.event is not None
        return (at := datetime.fromisoformat(entry.event.happened_at)), at
    return datetime.fromisoformat(entry.session.started_at), datetime.fromisoformat(entry.session.ended_at)
