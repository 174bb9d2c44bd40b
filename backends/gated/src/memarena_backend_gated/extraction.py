"""Reads the records out of a session: finds the wishes, whose they are, and which turns they are about.

A wish that points ("keep this to yourself") is about the rest of its own turn, or about an earlier turn of the speaker.
A wish that names its topic is about earlier turns of the same person with the same words. A later turn that repeats the
matter is covered as well (:func:`extend`).
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
"""Least `Namespace.similarity` to a wish's topic at which a turn is about the wish."""
MIN_SHARED = 2
"""Least number of stems that a turn must share with the topic; of a shorter topic, all its stems."""
BACK_TURNS = 6
"""Number of turns before a wish that points, among which the turn that it is about is searched."""
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|our|us)\b", re.I)


WishesByTurn = Mapping[str, tuple[Wish, ...]]
"""By turn id, the wishes that a model read; the rules read all other turns."""


def read_session(
    namespace: Namespace, fresh: Sequence[IndexedTurn], day_index: int, of_model: WishesByTurn = MappingProxyType({})
) -> list[Record]:
    """Add the records of a session's turns to the namespace, and return them in order.

    ``fresh`` are the turns of the session, already in the namespace; ``of_model`` are wishes that a model read.
    """
    added = []
    for position, indexed in enumerate(fresh):
        for record in _records(namespace, fresh, position, day_index, of_model):
            namespace.add_record(record)
            added.append(record)
        extend(namespace, indexed)
    return added


def add_again(namespace: Namespace, fresh: Sequence[IndexedTurn], records: Iterable[Record]) -> None:
    """Add records that an earlier reading of the session made, without reading its turns again."""
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
    """Yield a record for each wish of the turn at ``position``, by the model if it read any, else by the rules."""
    indexed = fresh[position]
    turn = indexed.turn
    if turn.speaker.role is Role.ASSISTANT or not turn.text:
        return
    reading = read_turn(turn.text, turn.said_at.date(), namespace.is_name)
    other_sentences = reading.rest
    of_model = stated.get(turn.turn_id)
    for wish in of_model or reading.wishes:
        about, topic = _about(namespace, fresh, position, wish, other_sentences)
        subject_id, subject = _subject(namespace, indexed, wish, other_sentences)
        stated_by = turn.speaker.participant_id
        own = subject_id == stated_by
        turn_ids = dict.fromkeys((turn.turn_id, *(s.turn.turn_id for s in about)))  # ordered, each once
        if wish.effect is not Effect.DELETE:
            person = subject_id or subject
            turn_ids |= dict.fromkeys(
                s.turn.turn_id for s in _same_topic(namespace, topic, person, subject, indexed, wish)
            )
        else:
            turn_ids |= dict.fromkeys(
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
            turn_ids=tuple(turn_ids),
            origin="model" if of_model else "rules",
        )


def _about(
    namespace: Namespace, fresh: Sequence[IndexedTurn], position: int, wish: Wish, rest: str
) -> tuple[list[IndexedTurn], tuple[str, ...]]:
    """Return the turns of its session that a wish points to, and the topic by which turns elsewhere match it.

    ``rest`` is the text of the wish's turn without its wishes.
    """
    if len(wish.topic) >= MIN_SHARED:
        return [], wish.topic
    rest_stems = content_stems(rest)
    if len(rest_stems) > MIN_SHARED:
        return [], (*wish.topic, *rest_stems)
    speaker = fresh[position].turn.speaker.participant_id
    earlier = fresh[max(0, position - BACK_TURNS) : position]
    pointed = next(
        (s for s in reversed(earlier) if s.turn.speaker.participant_id == speaker and len(s.stems) > 1), None
    )
    if pointed is None:
        pointed = next((s for s in reversed(earlier) if len(s.stems) > 1), None)
    if pointed is None:
        return [], (*wish.topic, *rest_stems)
    return [pointed], (*wish.topic, *content_stems(pointed.turn.text))


def _subject(namespace: Namespace, indexed: IndexedTurn, wish: Wish, rest: str) -> tuple[str, str]:
    """Return id and name of the person whom a wish is about.

    That is the person whose wish is reported; else a person whose name opens a turn without "I" or "we"; else the
    speaker. The id is empty for a reported person who is not a participant.
    """
    speaker = indexed.turn.speaker
    if wish.reported_by:
        return _person(namespace, wish.reported_by)
    text = expanded(rest or indexed.turn.text)
    if not _FIRST_PERSON.search(text):
        opening = re.match(r"(?:(?:by the way|so|well|oh|apparently|turns out|guess what)[, ]+)*([A-Z][\w'-]+)", text)
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
    """Extend records to a later turn that repeats their matter: the same topic of the same person, or the same code."""
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
