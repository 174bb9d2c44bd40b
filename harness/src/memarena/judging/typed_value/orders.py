"""Judges orders: which event is each stretch of an answer about, and in which order does the answer put them?

A *stretch* is the text between two signs or words such as ``then`` or ``after``. It is about the event of the gold with
which it shares most words, since an answer need not name an event as the gold does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memarena_dataset.values import OrderValue, TermValue
from memarena_dataset.values.words import content_words

from memarena.judging.judgment import Code, Judgment, right, wrong
from memarena.judging.typed_value.question import OpenQuestion, describe

_STRETCH = re.compile(
    r"[;\n,.!?→>—]|\b(?:and|then|before|afterwards|next|finally|followed by|after (?:that|this|which|it|them|these))\b"
    r"|(?P<turned>\bafter\b|\bfollowing\b|\bpreceded by\b)",
    re.IGNORECASE,
)
"""Signs and words between stretches; those of ``turned``, such as ``after``, put the later event first."""
_BACKWARDS = re.compile(r"\bbefore (?:that|this|it|them|which)\b|\bpreceded by\b", re.IGNORECASE)
"""Words after which comes an earlier event; an answer with several of them goes backwards."""
_SAYS_BACKWARDS = re.compile(
    r"\b(?:reverse order|last to first|latest to earliest|latest first|newest first|backwards)\b", re.I
)
"""Words that state that the order is reversed."""
_ASKS_FIRST = re.compile(r"\b(?:first|earlier|before|earliest)\b", re.IGNORECASE)
"""Words of a question that only asks which of two events was first."""
_LEAST_PREFIX = 4
"""Least common letters at the beginning of two forms of one word."""
_HEAD = 2
"""The last word of an event names its object and counts twice."""
_ENOUGH = 2
"""Least score of the event that a stretch is about."""
_FEW = 3
"""Content words of a stretch that may be the name of an event in a list."""


@dataclass(frozen=True)
class _Event:
    """The content words of an event, without people, and the names of the people who take part."""

    words: tuple[str, ...]
    actors: frozenset[str]


def rule_order(value: OrderValue, question: OpenQuestion, answer: str) -> Judgment:
    """Judge an answer right if it gives every event in the gold's order, or the first of two if that is asked for."""
    events = [_event(item, question) for item in value.items]
    told_order = list(_event_order(events, answer))
    if len(_BACKWARDS.findall(answer)) > 1 or _SAYS_BACKWARDS.search(answer):
        told_order.reverse()
    distinct = list(dict.fromkeys(told_order))
    if distinct == [0] and len(events) == 2 and _ASKS_FIRST.search(question.text):
        return right("value", Code.STATES_VALUE, value=describe(value))
    missing = [item.text for n, item in enumerate(value.items) if n not in distinct]
    if missing:
        return wrong("value", Code.MISSING_ITEM, value=", ".join(missing))
    # An answer that ends in a list of all of them may have spoken of each before.
    last = _last_round(told_order, len(events))
    if last == list(range(len(events))):
        return right("value", Code.STATES_VALUE, value=describe(value))
    return wrong("value", Code.OTHER_ORDER, value=describe(value))


def _event(item: TermValue, question: OpenQuestion) -> _Event:
    actors = {part for part in question.people if re.search(rf"\b{re.escape(part)}\b", item.text.lower())}
    words = [w for w in content_words(item.text) if w not in actors]
    if re.match(r"I\b", item.text):
        actors = {"you", "your", "i", "my", *question.record.asker_name.lower().split()}
    return _Event(tuple(words), frozenset(actors))


def _event_order(events: Sequence[_Event], answer: str) -> Iterator[int]:
    """Yield the events' indices in the order that the answer gives them; ``B after A`` is A, B."""
    positions: list[int] = []
    turned = leads = False
    start, opens = 0, True
    for match in [*_STRETCH.finditer(answer), None]:
        for event in _events_of_stretch(events, answer[start : match.start() if match else len(answer)]):
            if not positions or positions[-1] != event:
                positions.insert(len(positions) - 1 if turned and positions else len(positions), event)
                turned, leads, opens = leads, False, False
        if match is None:
            break
        word = match.group().lower()
        # "B after A" and "Before B, A" tell the later one first; "After A, B" does not.
        turned = turned or (match.group("turned") is not None and not opens)
        leads = leads or (word == "before" and opens)
        opens = opens or word in (".", ";", "\n", "!", "?")
        start = match.end()
    yield from positions


def _events_of_stretch(events: Sequence[_Event], stretch: str) -> list[int]:
    """Return the event that a stretch is about; several, in its order, if it names each; empty if no event fits."""
    stretch_words = content_words(stretch)
    people = set(re.findall(r"\w+", stretch.lower()))
    scores = [_score(event, stretch_words, people) for event in events]
    best = [n for n, score in enumerate(scores) if score >= _ENOUGH and score == max(scores)]
    if not best and len(stretch_words) <= _FEW and sum(score > 0 for score in scores) == 1:
        best = [scores.index(max(scores))]  # an item of a list: one word that no other event has
    if len(best) < 2:
        return best
    first = {
        n: next((i for i, s in enumerate(stretch_words) if _is_same_word(events[n].words[-1], s)), -1) for n in best
    }
    apart = len(set(first.values())) == len(best) and -1 not in first.values()
    return sorted(best, key=lambda n: first[n]) if apart else []


def _score(event: _Event, stretch_words: Sequence[str], people: set[str]) -> float:
    # One shared word and a person who takes part are enough (``_ENOUGH``), a person alone is not.
    shared = sum(
        _HEAD if n == len(event.words) - 1 else 1
        for n, w in enumerate(event.words)
        if any(_is_same_word(w, s) for s in stretch_words)
    )
    return shared + (1.5 if shared and event.actors & people else 0)


def _is_same_word(word: str, other: str) -> bool:
    return word == other or (
        min(len(word), len(other)) >= _LEAST_PREFIX and word[:_LEAST_PREFIX] == other[:_LEAST_PREFIX]
    )


def _last_round(order: Sequence[int], count: int) -> list[int]:
    """Return the last events if they are all events once; else the order in which events first appear."""
    tail = list(order[-count:])
    return tail if len(set(tail)) == count else list(dict.fromkeys(order))
