"""What the gate holds of one namespace: turns by their words, people, ties, and records by the turns they are about."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from memarena_backend import Day, Session, Turn

from memarena_backend_gated.records import Effect, Record
from memarena_backend_gated.sensitive import is_sensitive
from memarena_backend_gated.text import content, strong_tokens, words
from memarena_backend_gated.ties import TieBook, names_in


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn as the gate sees it. ``order`` numbers the turns of the namespace from 0."""

    turn: Turn
    session_id: str
    order: int
    stems: frozenset[str]
    strong: frozenset[str]
    words: frozenset[str]
    """In lower case, without a possessive ending."""

    def names(self, person: str) -> bool:
        """Whether the turn names a person, by the first name at least."""
        return first_name(person) in self.words


@dataclass(slots=True)
class Namespace:
    """One namespace. Records are numbered from 1 in the order in which they were stated."""

    owner_id: str = ""
    spoken: dict[str, Spoken] = field(default_factory=dict)
    by_session: dict[str, list[Spoken]] = field(default_factory=dict)
    by_stem: dict[str, list[Spoken]] = field(default_factory=lambda: defaultdict(list))
    by_strong: dict[str, list[Spoken]] = field(default_factory=lambda: defaultdict(list))
    present: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of each session in which the owner spoke: participant ids of who took part."""
    seen: set[str] = field(default_factory=set)
    """Participant ids of people who shared a session with the owner."""
    names: frozenset[str] = frozenset()
    people: dict[str, str] = field(default_factory=dict)
    """Latest display name of each participant, by id."""
    ties: TieBook = field(default_factory=TieBook)
    records: list[Record] = field(default_factory=list)
    by_turn: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    deletions: list[Record] = field(default_factory=list)
    frequency: Counter[str] = field(default_factory=Counter)
    topics: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """Records by the stems of their topic."""
    codes: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """Records by the strong tokens of the turns that they are about."""

    sensitive: dict[str, bool] = field(default_factory=dict)
    """Whether a turn speaks of a sensitive matter, of those that were asked for: a search repeats turns of others."""

    def is_sensitive(self, spoken: Spoken) -> bool:
        """Whether a turn speaks of a sensitive matter."""
        turn = spoken.turn
        known = self.sensitive.get(turn.turn_id)
        if known is None:
            known = self.sensitive[turn.turn_id] = is_sensitive(turn.text)
        return known

    def is_name(self, word: str) -> bool:
        """Whether a capitalised word is part of a known person's name."""
        return word in self.names

    def meet(self, day: Day) -> None:
        """Take in who takes part in a day's sessions, so that their names are known before its turns are read."""
        self.owner_id = day.owner.participant_id
        for session in day.sessions:
            for participant in session.participants:
                self.people[participant.participant_id] = participant.display_name
        self.names = names_in(self.people.values())

    def hear(self, session: Session) -> list[Spoken]:
        """Take in the turns of a session, in order."""
        fresh = []
        for turn in session.turns:
            stems = frozenset(content(turn.text))
            spoken = Spoken(
                turn, session.session_id, len(self.spoken), stems, strong_tokens(turn.text), plain_words(turn.text)
            )
            self.spoken[turn.turn_id] = spoken
            for word in stems:
                self.by_stem[word].append(spoken)
            for token in spoken.strong:
                self.by_strong[token].append(spoken)
            self.frequency.update(stems)
            self.ties.add(turn.speaker.display_name, turn.text, self.is_name)
            fresh.append(spoken)
        self.by_session[session.session_id] = fresh
        participants = frozenset(participant.participant_id for participant in session.participants)
        if any(turn.speaker.participant_id == self.owner_id for turn in session.turns):
            self.present[session.session_id] = participants
        if self.owner_id in participants:
            self.seen |= participants
        return fresh

    def weight(self, word: str) -> float:
        """How much a word says: the rarer, the more (inverse document frequency over turns)."""
        return math.log(1 + len(self.spoken) / (0.5 + self.frequency[word]))

    def likeness(self, topic: Iterable[str], stems: frozenset[str]) -> float:
        """Share of the weight of a topic that a turn has words of, 0 to 1; a topic without words is like nothing."""
        topic_stems = set(topic)
        total = sum(map(self.weight, topic_stems))
        return sum(map(self.weight, topic_stems & stems)) / total if total else 0.0

    def add(self, record: Record) -> None:
        """Keep a record, and find it by the turns that it is about."""
        self.records.append(record)
        if record.wish.effect is Effect.DELETE:
            self.deletions.append(record)
        else:
            for word in record.wish.topic:
                self.topics[word].append(record)
            for token in {token for turn_id in record.turn_ids for token in self.spoken[turn_id].strong}:
                self.codes[token].append(record)
        for turn_id in record.turn_ids:
            self.by_turn[turn_id].append(record)

    def candidates(self, stems: Iterable[str], strong: Iterable[str]) -> Sequence[Spoken]:
        """Turns that share a word with a topic, each once, in order."""
        shared = {spoken.order: spoken for word in stems for spoken in self.by_stem.get(word, ())}
        shared |= {spoken.order: spoken for token in strong for spoken in self.by_strong.get(token, ())}
        return [shared[order] for order in sorted(shared)]


@lru_cache(maxsize=4_096)
def first_name(name: str) -> str:
    """The first word of a name in lower case; of an empty one a word that no text holds."""
    return next(iter(words(name)), "\0").casefold()


def plain_words(text: str) -> frozenset[str]:
    """The words of a text in lower case, without possessive endings."""
    return frozenset(word.casefold().removesuffix("'s").removesuffix("’s") for word in words(text))
