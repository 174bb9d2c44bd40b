"""Reads the wishes about sharing that an English turn states: permission verbs, negation, addressees, dates.

A turn is cut into sentences and clauses, contractions are written out, and each clause is read by the first rule of
:mod:`memarena_backend_gated.rules` that matches. Clauses of a turn complete each other: "keep it quiet until Friday,
after that anyone may know". :mod:`memarena_backend_gated.extraction` decides what a wish is *about*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta

from memarena_backend_gated.audience import GROUP_WORDS, NameOf
from memarena_backend_gated.dates import day_named
from memarena_backend_gated.english import pattern, word_list
from memarena_backend_gated.records import CERTAIN, DOUBTFUL, Effect, Wish
from memarena_backend_gated.rules import Clause, read_clause, read_short
from memarena_backend_gated.text import content_stems, expanded, sentences

_CLAUSE, _REPORTED, _TRIGGER = pattern("clause"), pattern("reported"), pattern("trigger")
_UNTIL, _FROM, _CONDITION, _HARMLESS_IF = (pattern(name) for name in ("until", "from", "condition", "harmless_if"))
_THEN = re.compile(r"\b(?:after that|after then|from then|afterwards|from that day|then)\b", re.I)
_PERMISSION_WORDS = frozenset(content_stems(" ".join(word_list("permission"))) + content_stems(" ".join(GROUP_WORDS)))


@dataclass(frozen=True, slots=True)
class TurnReading:
    """The wishes of a turn, in order, and its sentences that state none (``rest``)."""

    wishes: tuple[Wish, ...]
    rest: str


def read_turn(text: str, today: date, is_name: NameOf) -> TurnReading:
    """Read the wishes of a turn; most turns state none."""
    wishes: list[Wish] = []
    other_sentences = []
    for sentence in sentences(text):
        long_form = expanded(sentence)
        follows = bool(wishes)
        clause_wishes = (
            list(_wishes_of(long_form, today, is_name, follows=follows))
            if follows or _TRIGGER.search(long_form)
            else []
        )
        if not clause_wishes:
            other_sentences.append(sentence)
            continue
        reported = _REPORTED.search(long_form)
        reporter = reported.group("who") if reported is not None and is_name(reported.group("who").split()[0]) else ""
        topic = _topic(clause_wishes, long_form)
        wishes += [replace(wish, reported_by=reporter, topic=topic) for wish in clause_wishes]
    return TurnReading(tuple(_completed(wishes)), " ".join(other_sentences))


def _wishes_of(sentence: str, today: date, is_name: NameOf, *, follows: bool) -> Iterable[Wish]:
    for text in _CLAUSE.split(sentence):
        if not text.strip():
            continue
        clause = Clause(text.strip(), is_name)
        wish = read_clause(clause) if _TRIGGER.search(text) else None
        if wish is None and follows:
            wish = read_short(clause)
        if wish is not None:
            follows = True
            yield _timed(wish, clause.text, today)


def _timed(wish: Wish, text: str, today: date) -> Wish:
    """Return the wish with the days between which it holds, or with a condition that is not a date as quoted text."""
    if wish.effect is Effect.DELETE:
        return wish
    until = _UNTIL.search(text)
    if until is not None and (wish.effect is Effect.WITHHOLD or wish.others_excluded):
        day = day_named(text[until.end() :], today)
        return replace(wish, valid_until=day, condition="" if day else text[until.start() :][:80])
    return _leave_timed(wish, text, today) if wish.effect is Effect.SHARE else wish


def _leave_timed(wish: Wish, text: str, today: date) -> Wish:
    start, condition, then = _FROM.search(text), _CONDITION.search(text), _THEN.search(text)
    if start is not None and not wish.others_excluded:
        day = day_named(text[start.end() :], today)
        if day is not None:
            after = start.group().lower() == "after"
            return replace(wish, valid_from=day + timedelta(days=1) if after else day)
        if then is None and start.group().lower() not in {"when", "from"}:
            return _conditional(wish, text[start.start() :])
    if condition is not None and _HARMLESS_IF.search(text) is None:
        return _conditional(wish, text[condition.start() :])
    # A mark for _completed, which replaces it by the day of the turn's other wish.
    return wish if then is None else replace(wish, condition="then")


def _conditional(wish: Wish, condition: str) -> Wish:
    return replace(wish, condition=condition[:80], confidence=min(wish.confidence, DOUBTFUL))


def _completed(wishes: list[Wish]) -> Iterable[Wish]:
    """Yield the wishes of a turn, with dates of one wish filled into those that refer to it.

    "Only Ann until then" ends when the other wish begins; "after that anyone" begins when the other wish ends.
    """
    ends = next((wish.valid_until for wish in wishes if wish.valid_until is not None), None)
    begins = next((wish.valid_from for wish in wishes if wish.valid_from is not None), None)
    for wish in wishes:
        general = wish.others_excluded or (wish.effect is Effect.WITHHOLD and wish.audience.everyone)
        if general and wish.valid_until is None and begins is not None:
            yield replace(wish, valid_until=begins, condition="")
        elif wish.condition == "then":
            yield replace(wish, valid_from=ends or begins, condition="", confidence=CERTAIN)
        else:
            yield wish


def _topic(wishes: Iterable[Wish], sentence: str) -> tuple[str, ...]:
    """Return the stems of what a sentence is about: all but words of permission and the names of addressees."""
    names_in_wishes = {
        name for wish in wishes for names in (wish.audience.names, wish.audience.except_names) for name in names
    }
    dropped = set(content_stems(" ".join(names_in_wishes))) | _PERMISSION_WORDS
    return tuple(word for word in content_stems(sentence) if word not in dropped)
