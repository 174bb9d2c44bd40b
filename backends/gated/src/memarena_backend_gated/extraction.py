"""Reads the records out of a session: which sentences are wishes, whose they are, and which turns they are about.

A wish that points ("keep this to yourself") is about what its turn says next to it, or about the speaker's turn before.
One that names its topic is about earlier turns of the same person with the same words. A later turn that says the same
again is covered as well (:func:`extend`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from memarena_backend import Role

from memarena_backend_gated.grammar import read_turn
from memarena_backend_gated.namespace import IndexedTurn, Namespace, first_name, plain_words
from memarena_backend_gated.records import Effect, Record, Wish
from memarena_backend_gated.text import content_stems, expanded

MIN_SIMILARITY = 0.55
"""From this similarity a turn is about the topic of a wish (`Namespace.similarity`)."""
MIN_SHARED = 2
"""Words that a turn shares at least with a topic that was not named but follows from what was said."""
BACK_TURNS = 6
"""Turns before a wish that points, among which the turn that it is about is looked for."""
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|our|us)\b", re.I)


WishesByTurn = Mapping[str, tuple[Wish, ...]]
"""Wishes by turn that a model states; the rules read all other turns."""


def read_session(
    namespace: Namespace, fresh: Sequence[IndexedTurn], day_index: int, of_model: WishesByTurn = MappingProxyType({})
) -> list[Record]:
    """The records that a session adds, in order, and their ties to what was said before."""
    added = []
    for position, indexed in enumerate(fresh):
        for record in _records(namespace, fresh, position, day_index, of_model):
            namespace.add_record(record)
            added.append(record)
        extend(namespace, indexed)
    return added


def add_again(namespace: Namespace, fresh: Sequence[IndexedTurn], records: Iterable[Record]) -> None:
    """Add the records that an earlier reading of the session made."""
    by_turn: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_turn[record.source_turn_id].append(record)
    for indexed in fresh:
        for record in by_turn[indexed.turn.turn_id]:
            namespace.add_record(record)
        extend(namespace, indexed)


def _records(
    namespace: Namespace, fresh: Sequence[IndexedTurn], position: int, day_index: int, stated: WishesByTurn
) -> Iterable[Record]:
    indexed = fresh[position]
    turn = indexed.turn
    if turn.speaker.role is Role.ASSISTANT or not turn.text:
        return
    reading = read_turn(turn.text, turn.said_at.date(), namespace.is_name)
    rest = reading.rest
    of_model = stated.get(turn.turn_id)
    for wish in of_model or reading.wishes:
        about, topic = _about(namespace, fresh, position, wish, rest)
        subject_id, subject = _subject(namespace, indexed, wish, rest)
        stated_by = turn.speaker.participant_id
        own = subject_id == stated_by
        turns = dict.fromkeys((turn.turn_id, *(s.turn.turn_id for s in about)))
        if wish.effect is not Effect.DELETE:
            person = subject_id or subject
            turns |= dict.fromkeys(
                s.turn.turn_id for s in _same_topic(namespace, topic, person, subject, indexed, wish)
            )
        else:
            turns |= dict.fromkeys(
                s.turn.turn_id for s in namespace.candidates((), wish.values) if s.order <= indexed.order
            )
        yield Record(
            record_id=f"w{len(namespace.records) + 1}",
            wish=wish if wish.topic else replace(wish, topic=topic),
            subject=subject,
            subject_id=subject_id,
            stated_by=stated_by,
            own=own,
            said_at=turn.said_at,
            day_index=day_index,
            session_id=indexed.session_id,
            source_turn_id=turn.turn_id,
            turn_ids=tuple(turns),
            origin="model" if of_model else "rules",
        )


def _about(
    namespace: Namespace, fresh: Sequence[IndexedTurn], position: int, wish: Wish, rest: str
) -> tuple[list[IndexedTurn], tuple[str, ...]]:
    """Turns that a wish points to within its session, and the topic by which it is found elsewhere."""
    if len(wish.topic) >= MIN_SHARED:
        return [], wish.topic
    own = content_stems(rest)
    if len(own) > MIN_SHARED:
        return [], (*wish.topic, *own)
    speaker = fresh[position].turn.speaker.participant_id
    earlier = fresh[max(0, position - BACK_TURNS) : position]
    pointed = next(
        (s for s in reversed(earlier) if s.turn.speaker.participant_id == speaker and len(s.stems) > 1), None
    )
    if pointed is None:
        pointed = next((s for s in reversed(earlier) if len(s.stems) > 1), None)
    if pointed is None:
        return [], (*wish.topic, *own)
    return [pointed], (*wish.topic, *content_stems(pointed.turn.text))


def _subject(namespace: Namespace, indexed: IndexedTurn, wish: Wish, rest: str) -> tuple[str, str]:
    """Id and name of the person whom a wish is about: who is reported, who the turn is about, else the speaker."""
    speaker = indexed.turn.speaker
    if wish.reported_by:
        return _person(namespace, wish.reported_by)
    first = expanded(rest or indexed.turn.text)
    if not _FIRST_PERSON.search(first):
        opening = re.match(r"(?:(?:by the way|so|well|oh|apparently|turns out|guess what)[, ]+)*([A-Z][\w'-]+)", first)
        if opening is not None and namespace.is_name(opening.group(1).removesuffix("'s")):
            return _person(namespace, opening.group(1).removesuffix("'s"))
    return speaker.participant_id, speaker.display_name


def _person(namespace: Namespace, name: str) -> tuple[str, str]:
    for participant_id, display_name in namespace.people.items():
        if first_name(name) in plain_words(display_name):
            return participant_id, display_name
    return "", name


def _same_topic(
    namespace: Namespace, topic: tuple[str, ...], person: str, name: str, source: IndexedTurn, wish: Wish
) -> Iterable[IndexedTurn]:
    for indexed in namespace.candidates(topic, ()):
        if indexed.order < source.order and _concerns(indexed, person, name) and _is_about(namespace, topic, indexed):
            yield indexed


def _concerns(indexed: IndexedTurn, person: str, name: str) -> bool:
    return indexed.turn.speaker.participant_id == person or indexed.mentions(name)


def _is_about(namespace: Namespace, topic: Sequence[str], indexed: IndexedTurn) -> bool:
    shared = len(set(topic) & indexed.stems)
    enough = shared >= min(MIN_SHARED, len(set(topic)))
    return enough and namespace.similarity(topic, indexed.stems) >= MIN_SIMILARITY


def extend(namespace: Namespace, indexed: IndexedTurn) -> None:
    """Cover a later turn that says again what a record is about: the same topic of the same person, or its code."""
    repeated = {
        record.record_id: record for token in indexed.tokens for record in namespace.records_by_token.get(token, ())
    }
    similar = {
        record.record_id: record for word in indexed.stems for record in namespace.records_by_topic.get(word, ())
    }
    for record_id, record in (similar | repeated).items():
        if indexed.turn.turn_id in record.turn_ids:
            continue
        person = record.subject_id or record.subject
        is_about = _concerns(indexed, person, record.subject) and _is_about(namespace, record.wish.topic, indexed)
        if record_id in repeated or is_about:
            namespace.records_by_turn[indexed.turn.turn_id].append(record)
