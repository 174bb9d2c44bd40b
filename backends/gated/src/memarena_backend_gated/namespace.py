"""Holds the gate's state of one namespace: its turns, people and relations, and its records.

A *record* (`records.py`) is a wish that a person stated about sharing something, with the turns that it is about.
A *tie* (`ties.py`) is a relation between two people, such as sister or colleague.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from memarena_backend import Day, Session, Turn

from memarena_backend_gated.records import Effect, Record
from memarena_backend_gated.sensitive import is_sensitive
from memarena_backend_gated.text import content_stems, identifying_tokens, words
from memarena_backend_gated.ties import TieBook, names_in


@dataclass(frozen=True, slots=True)
class IndexedTurn:
    """A turn with the words by which it is searched. ``order`` numbers the turns of the namespace from 0."""

    turn: Turn
    session_id: str
    order: int
    stems: frozenset[str]
    """Stems of its content words."""
    tokens: frozenset[str]
    """Codes and numbers that identify a fact by themselves."""
    words: frozenset[str]
    """Words in lower case, without a possessive ending."""

    def mentions(self, person: str) -> bool:
        """Whether the turn names a person, by the first name at least."""
        return first_name(person) in self.words


@dataclass(slots=True)
class Namespace:
    """One namespace. Records are numbered from 1 in the order in which they were stated."""

    owner_id: str = ""
    turns: dict[str, IndexedTurn] = field(default_factory=dict)
    """Turns by id, in the order in which they were ingested."""
    by_session: dict[str, list[IndexedTurn]] = field(default_factory=dict)
    """Turns by session id."""
    by_stem: dict[str, list[IndexedTurn]] = field(default_factory=lambda: defaultdict(list))
    by_token: dict[str, list[IndexedTurn]] = field(default_factory=lambda: defaultdict(list))
    """Turns by identifying token."""
    participants_by_session: dict[str, frozenset[str]] = field(default_factory=dict)
    """Participant ids of each session in which the owner spoke."""
    acquaintances: set[str] = field(default_factory=set)
    """Participant ids of people who shared a session with the owner."""
    name_words: frozenset[str] = frozenset()
    """Words of the names of all people."""
    people: dict[str, str] = field(default_factory=dict)
    """Latest display name of each participant, by id."""
    ties: TieBook = field(default_factory=TieBook)
    records: list[Record] = field(default_factory=list)
    records_by_turn: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """Records by the ids of the turns that they are about."""
    deletions: list[Record] = field(default_factory=list)
    """Records of wishes to delete something."""
    turns_with_stem: Counter[str] = field(default_factory=Counter)
    """Number of turns by stem."""
    records_by_topic: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """Records by the stems of their topic, without deletions."""
    records_by_token: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """Records by the identifying tokens of the turns that they are about, without deletions."""
    sensitive_by_turn: dict[str, bool] = field(default_factory=dict)
    """Cache of `is_sensitive` by turn id: searches return the same turns again."""

    def is_sensitive(self, turn: IndexedTurn) -> bool:
        """Whether a turn is about a sensitive matter."""
        turn_id = turn.turn.turn_id
        result = self.sensitive_by_turn.get(turn_id)
        if result is None:
            result = self.sensitive_by_turn[turn_id] = is_sensitive(turn.turn.text)
        return result

    def is_name(self, word: str) -> bool:
        """Whether a capitalised word is part of a known person's name."""
        return word in self.name_words

    def add_people(self, day: Day) -> None:
        """Add who takes part in a day's sessions, so that their names are known before its turns are read."""
        self.owner_id = day.owner.participant_id
        for session in day.sessions:
            for participant in session.participants:
                self.people[participant.participant_id] = participant.display_name
        self.name_words = names_in(self.people.values())

    def add_session(self, session: Session) -> list[IndexedTurn]:
        """Index the turns of a session and the relations that they mention; return them in order."""
        new_turns = []
        for turn in session.turns:
            new_turn = IndexedTurn(
                turn=turn,
                session_id=session.session_id,
                order=len(self.turns),
                stems=frozenset(content_stems(turn.text)),
                tokens=identifying_tokens(turn.text),
                words=plain_words(turn.text),
            )
            self.turns[turn.turn_id] = new_turn
            for stem in new_turn.stems:
                self.by_stem[stem].append(new_turn)
            for token in new_turn.tokens:
                self.by_token[token].append(new_turn)
            self.turns_with_stem.update(new_turn.stems)
            self.ties.add(turn.speaker.display_name, turn.text, self.is_name)
            new_turns.append(new_turn)
        self.by_session[session.session_id] = new_turns
        participants = frozenset(participant.participant_id for participant in session.participants)
        if any(turn.speaker.participant_id == self.owner_id for turn in session.turns):
            self.participants_by_session[session.session_id] = participants
        if self.owner_id in participants:
            self.acquaintances |= participants
        return new_turns

    def weight(self, stem: str) -> float:
        """Return the inverse document frequency of a stem over turns, in its BM25 form: the rarer, the higher."""
        return math.log(1 + len(self.turns) / (0.5 + self.turns_with_stem[stem]))

    def similarity(self, topic: Iterable[str], stems: frozenset[str]) -> float:
        """Return the weighted share of a topic's stems that a turn has, 0 to 1; 0 for a topic without stems."""
        topic_stems = set(topic)
        total = sum(map(self.weight, topic_stems))
        return sum(map(self.weight, topic_stems & stems)) / total if total else 0.0

    def add_record(self, record: Record) -> None:
        """Add a record, and index it by its topic and by the turns that it is about."""
        self.records.append(record)
        if record.wish.effect is Effect.DELETE:
            self.deletions.append(record)
        else:
            for stem in record.wish.topic:
                self.records_by_topic[stem].append(record)
            for token in {token for turn_id in record.turn_ids for token in self.turns[turn_id].tokens}:
                self.records_by_token[token].append(record)
        for turn_id in record.turn_ids:
            self.records_by_turn[turn_id].append(record)

    def candidates(self, stems: Iterable[str], tokens: Iterable[str]) -> Sequence[IndexedTurn]:
        """Return the turns with at least one of the stems or identifying tokens, each once, in order."""
        by_order = {turn.order: turn for stem in stems for turn in self.by_stem.get(stem, ())}
        by_order |= {turn.order: turn for token in tokens for turn in self.by_token.get(token, ())}
        return [by_order[order] for order in sorted(by_order)]


@lru_cache(maxsize=4_096)
def first_name(name: str) -> str:
    """Return the first word of a name in lower case; for an empty name a word that no text contains."""
    return next(iter(words(name)), "\0").casefold()


def plain_words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without possessive endings."""
    return frozenset(word.casefold().removesuffix("'s").removesuffix("’s") for word in words(text))
