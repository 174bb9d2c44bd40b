"""Audits the items of a life: their sources, times and names must be supported by their own text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.errors import BrokenError
from memarena.conformance.life import Entry, Life

_WORD = re.compile(r"\w+")
_DATE_CHARS = 10
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2}))?", re.ASCII)
_ROUNDING = timedelta(milliseconds=1)


class Audit:
    """Audits items by the words that occur once in a life. ``provenance``: sources must be named, not only right."""

    def __init__(self, life: Life, *, provenance: bool) -> None:
        self._life, self._provenance = life, provenance
        self._by_word: dict[str, list[Entry]] = {}
        for entry in life.entries:
            for word in {entry.fact.value.lower(), entry.fact.question.lower().rstrip("?")}:  # a long text has two
                self._by_word.setdefault(word, []).append(entry)
        self._others = [entry for entry in life.entries if not _WORD.fullmatch(entry.fact.value.lower())]
        self._sessions = {e.session.session_id: e.session for e in life.entries if e.session is not None}
        turns = [turn for session in self._sessions.values() for turn in session.turns]
        self._turns, self._empty = {turn.turn_id for turn in turns}, {turn.turn_id for turn in turns if not turn.text}
        self._events = {entry.event.event_id for entry in life.entries if entry.event is not None}
        people = {p.display_name for session in self._sessions.values() for p in session.participants}
        self._people = people | set(life.renamed)
        self._sound: set[bytes] = set()

    def words_in(self, text: str) -> set[str]:
        """Return the words of a text that identify turns or events of the life."""
        return {word for word in _WORD.findall(text.lower()) if word in self._by_word}

    def check(self, items: Iterable[pb.MemoryItem]) -> None:
        """Raise BrokenError for an item that names a wrong source, time or person, or lacks its source."""
        for item in items:
            if not item.text or not math.isfinite(item.score):
                raise BrokenError(f"an item has the text {item.text[:60]!r} and the score {item.score}")
            if (key := item.SerializeToString(deterministic=True)) not in self._sound:
                self._sources(item)
                self._time(item)
                self._sound.add(key)

    def _held(self, item: pb.MemoryItem) -> list[Entry]:
        """Return the entries of which an item contains a word, or, for entries without such a word, the text."""
        held = dict.fromkeys(entry for word in self.words_in(item.text) for entry in self._by_word[word])
        return [*held] + [entry for entry in self._others if entry.fact.statement in item.text]

    def _sources(self, item: pb.MemoryItem) -> None:
        what = f"the item {item.text[:60]!r}"
        for kind, named, known in (
            ("session", item.source_session_ids, self._life.session_ids),
            ("turn", item.source_turn_ids, self._turns),
            ("event", item.source_event_ids, self._events),
        ):
            if foreign := [each for each in named if each not in known]:
                raise BrokenError(f"{what} names the {kind} {foreign[0]!r}, which was never ingested")
        held = self._held(item)
        if not held or item.derived:
            return
        partly = {entry.turn.turn_id for entry in held if entry.turn is not None}
        partly |= {entry.event.event_id for entry in held if entry.event is not None}
        of_sessions = {entry.session.session_id for entry in held if entry.session is not None}
        if more := set(item.source_session_ids) - of_sessions:
            raise BrokenError(
                f"{what} names {len(item.source_session_ids)} sessions and holds no word of {len(more)} of them, "
                f"the first {min(more)!r}"
            )
        if more := {*item.source_turn_ids, *item.source_event_ids} - partly - self._empty:
            raise BrokenError(f"{what} names the turn or event {min(more)!r}, of which it holds no word")
        whole = [entry for entry in held if entry.fact.statement in item.text]
        self._names(item, whole)
        if self._provenance:
            self._named(item, whole)

    def _named(self, item: pb.MemoryItem, whole: list[Entry]) -> None:
        """Raise BrokenError for a turn whose text the item contains, but its sources lack, unless it occurs twice."""
        twice = {entry.fact for entry in whole if sum(each.fact is entry.fact for each in whole) > 1}
        for entry in whole:
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

    def _names(self, item: pb.MemoryItem, whole: list[Entry]) -> None:
        """Raise BrokenError for a name in an item of a person who took no part, or who is not the turn's speaker."""
        sessions = [entry.session for entry in whole if entry.session is not None]
        if not sessions or len(sessions) != len(whole):
            return
        shown = {name for name in self._people if name in item.text}
        present = {p.display_name for session in sessions for p in session.participants}
        known_names = {*present, *(name for name in shown if any(name in t.fact.statement for t in whole))}
        if strange := shown - known_names:
            raise BrokenError(
                f"the item {item.text[:60]!r} names {min(strange)}, a name of no participant of its session"
            )
        (first, *more), turn = whole, whole[0].turn
        if more or turn is None or first.session is None:
            return
        speaker = next(p.display_name for p in first.session.participants if p.participant_id == turn.speaker_id)
        if turn.speaker_id in item.text and speaker not in shown:
            raise BrokenError(f"the item {item.text[:60]!r} names {speaker} by the id {turn.speaker_id!r}")
        if not shown:
            return
        if speaker not in shown:
            raise BrokenError(f"the item {item.text[:60]!r} names {min(shown)}, and the speaker is {speaker}")

    def _time(self, item: pb.MemoryItem) -> None:
        what = f"the item {item.text[:60]!r}"
        for name in ("time", "valid_from", "valid_until"):
            reported = getattr(item, name)
            if reported and _TIME.fullmatch(reported) is None:
                raise BrokenError(f"{what}: {name} is {reported!r}, expected an RFC 3339 time with offset or a date")
        if item.valid_from and item.valid_until and _day_of(item.valid_until) < _day_of(item.valid_from):
            raise BrokenError(f"{what}: valid_until ({item.valid_until}) is before valid_from ({item.valid_from})")
        held = self._held(item)
        if not item.time or item.derived or not held or len({_source(entry) for entry in held}) > 1:
            return
        first, last = _span(held[0])
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
