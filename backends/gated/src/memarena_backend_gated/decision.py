"""Decides whether an asker may know an item, by the rules of SPEC.md's reference prompt, before a reader sees it.

A wish is what a person states about who may know a matter; a record is a wish with the turns that it is about. Rules:

1. The owner may know everything, another person their own words.
2. Matters that are to be deleted are withheld from all other askers.
3. The latest wish of the person whom the item is about decides; another person's wish only if that person stated none.
4. If a wish does not decide (an unknown friendship, a condition other than a day), the default applies.
5. Without a wish: participants of the session may know the item; people whom the owner knows may know all but codes,
   numbers, addresses and matters of health; strangers may know nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from itertools import groupby
from typing import Literal

from memarena_backend import AskerKind, Item, Query

from memarena_backend_gated.audience import Asker, Reach, reach
from memarena_backend_gated.namespace import IndexedTurn, Namespace, first_name, plain_words
from memarena_backend_gated.records import SURE, Answer, Effect, Record
from memarena_backend_gated.sensitive import is_sensitive
from memarena_backend_gated.text import content_stems, identifying_tokens

Default = Literal["careful", "open"]


class Ground(str, Enum):
    """Why an item is shown or withheld."""

    OWN_WORDS = "own_words"
    WISH = "wish"
    UNCLEAR = "unclear"
    DELETED = "deleted"
    HEARD = "heard"
    SENSITIVE = "sensitive"
    STRANGER = "stranger"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one item, and the records that led to it."""

    shown: bool
    ground: Ground
    record_ids: tuple[str, ...] = ()


def decide(namespace: Namespace, item: Item, query: Query, default: Default) -> Decision:
    """Decide whether the asker of a query may know an item. Never called for the owner."""
    asker = asker_of(namespace, query)
    turns = _turns(namespace, item)
    deleted = _deletions(namespace, item, turns)
    if deleted:
        return Decision(shown=False, ground=Ground.DELETED, record_ids=tuple(record.record_id for record in deleted))
    if not turns:
        return _of_part(namespace, item.text, _by_text(namespace, item), None, asker, query, default)
    parts = [
        _of_part(
            namespace,
            indexed.turn.text,
            namespace.records_by_turn.get(indexed.turn.turn_id, ()),
            indexed,
            asker,
            query,
            default,
        )
        for indexed in turns
    ]
    # A single withheld turn withholds the whole item, because the item's text cannot be split.
    return next((part for part in parts if not part.shown), parts[0])


def asker_of(namespace: Namespace, query: Query) -> Asker:
    """Return the asker of a query, with whether the owner knows them."""
    requester = query.requester
    is_known = requester.kind is AskerKind.KNOWN_PERSON and (
        bool(requester.relationship) or requester.participant_id in namespace.acquaintances
    )
    return Asker(requester, is_known)


def _turns(namespace: Namespace, item: Item) -> list[IndexedTurn]:
    """Return the source turns of an item.

    If the item names sessions but no turns, these are the turns of which it has at least 60% of the content stems.
    """
    turns = [namespace.turns[turn_id] for turn_id in item.turn_ids if turn_id in namespace.turns]
    if turns:
        return turns
    stems = frozenset(content_stems(item.text))
    return [
        indexed
        for session_id in item.session_ids
        for indexed in namespace.by_session.get(session_id, ())
        if indexed.stems and len(indexed.stems & stems) >= 0.6 * len(indexed.stems)
    ]


def _deletions(namespace: Namespace, item: Item, turns: Sequence[IndexedTurn]) -> list[Record]:
    if not namespace.deletions:
        return []
    text = item.text.lower()
    tokens = identifying_tokens(item.text)
    ids = {indexed.turn.turn_id for indexed in turns}
    return [
        record
        for record in namespace.deletions
        if any(value in tokens or (" " in value and value in text) for value in record.wish.values)
        or (not record.wish.values and ids & set(record.turn_ids))
    ]


def _by_text(namespace: Namespace, item: Item) -> list[Record]:
    """Return the records that may concern an item without sources: it names their person and is about their topic.

    The item has 40% of the topic at least, by `Namespace.similarity`.
    """
    stems, item_words = frozenset(content_stems(item.text)), plain_words(item.text)
    return [
        record
        for record in namespace.records
        if first_name(record.subject) in item_words and namespace.similarity(record.wish.topic, stems) >= 0.4
    ]


def _of_part(
    namespace: Namespace,
    text: str,
    records: Iterable[Record],
    indexed: IndexedTurn | None,
    asker: Asker,
    query: Query,
    default: Default,
) -> Decision:
    """Decide on a part of an item: by its speaker, by wishes, by its hearers, else by the rules without a wish."""
    asker_id = asker.requester.participant_id
    if indexed is not None and asker_id and indexed.turn.speaker.participant_id == asker_id:
        return Decision(shown=True, ground=Ground.OWN_WORDS)
    decided = _by_wishes(namespace, list(records), asker, query.asked_at.date(), default)
    if decided is not None:
        return decided
    if indexed is not None and asker_id and asker_id in namespace.participants_by_session.get(indexed.session_id, ()):
        return Decision(shown=True, ground=Ground.HEARD)
    if asker.is_stranger:
        return Decision(shown=False, ground=Ground.STRANGER)
    if is_sensitive(text) if indexed is None else namespace.is_sensitive(indexed):
        return Decision(shown=False, ground=Ground.SENSITIVE)
    return Decision(shown=True, ground=Ground.DEFAULT)


def _by_wishes(
    namespace: Namespace, records: list[Record], asker: Asker, today: date, default: Default
) -> Decision | None:
    """Return the decision that wishes lead to, None if no wish applies.

    The latest session with a wish that applies decides. Within a session, a wish that names the asker takes precedence
    over one for a group, and that over one for everyone.
    """
    wishes = [record for record in records if record.wish.effect is not Effect.DELETE]
    if any(record.subject_id and record.subject_id == asker.requester.participant_id for record in wishes):
        return Decision(shown=True, ground=Ground.OWN_WORDS)
    subjects_wishes = [record for record in wishes if record.own]
    latest_first = sorted(
        subjects_wishes or wishes, key=lambda record: (record.said_at, int(record.record_id[1:])), reverse=True
    )
    too_early: tuple[str, ...] = ()
    implied: tuple[str, ...] = ()
    for _, session in groupby(latest_first, key=lambda record: record.session_id):
        verdict = _of_session(namespace, list(session), asker, today)
        if verdict is None:
            continue
        closeness, answer, record_id = verdict
        if answer is _EARLY:
            too_early = (record_id,)
            continue
        if closeness is Reach.IMPLIED:
            implied = (record_id,)
            continue
        if answer is Answer.UNKNOWN:
            return Decision(shown=default == "open", ground=Ground.UNCLEAR, record_ids=(record_id,))
        is_allowed = answer is Answer.YES
        return Decision(shown=is_allowed, ground=Ground.WISH, record_ids=(*too_early, record_id))
    if too_early:
        return Decision(shown=False, ground=Ground.WISH, record_ids=too_early)
    return Decision(shown=default == "open", ground=Ground.UNCLEAR, record_ids=implied) if implied else None


_EARLY = "early"
"""Replaces an Answer for a wish to share from a future day: until then earlier wishes decide, else it withholds."""


def _of_session(
    namespace: Namespace, records: list[Record], asker: Asker, today: date
) -> tuple[Reach, Answer | str, str] | None:
    """Return the deciding verdict of a session's records (latest first) on the asker, and the id of its record."""
    best: tuple[Reach, Answer | str, str] | None = None
    for record in records:
        verdict = _verdict(namespace, record, asker, today)
        if verdict is None:
            continue
        if best is None or verdict[0] > best[0] or (verdict[0] == best[0] and best[1] is _EARLY):
            best = (*verdict, record.record_id)
    return best


def _verdict(namespace: Namespace, record: Record, asker: Asker, today: date) -> tuple[Reach, Answer | str] | None:
    """Return how specifically a record refers to the asker, and whether it lets them know; None if it does not apply.

    The answer is UNKNOWN if that is unclear, and `_EARLY` if the record lets them know from a later day.
    """
    wish = record.wish
    speaker = namespace.people.get(record.stated_by, record.subject)
    meant = reach(wish.audience, asker, speaker, record.stated_by == namespace.owner_id, namespace.ties.have)
    expired = wish.valid_until is not None and today >= wish.valid_until
    if wish.effect is Effect.WITHHOLD or (meant is None and wish.others_excluded):
        if meant is None and not wish.others_excluded:
            return None
        closeness, within = meant or (Reach.EVERYONE, Answer.YES)
        if expired:
            return None if asker.is_stranger else (closeness, Answer.YES)
        answer = {Answer.YES: Answer.NO, Answer.NO: Answer.YES}.get(within, Answer.UNKNOWN)
    elif meant is None:
        # Permission for some people says nothing clear about the others.
        return Reach.IMPLIED, Answer.UNKNOWN
    else:
        closeness, answer = meant
        if answer is Answer.YES and wish.valid_from is not None and today < wish.valid_from:
            return closeness, _EARLY
    return closeness, answer if wish.confidence >= SURE else Answer.UNKNOWN
