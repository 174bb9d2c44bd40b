"""Rewords questions so that they do not repeat their evidence: drawn from templates, checked, drawn again.

A rewording is dropped if it repeats the evidence beyond the limits of design 3, loses a name, names an id or states the
gold. What was dropped, and why, is counted for the report of the data set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from memarena_dataset.model import Family
from memarena_dataset.values import Value
from memarena_dataset.values.phrases import normal, phrase_occurs, tokens_of
from memarena_dataset.values.possible import names_value
from pydantic import TypeAdapter

from memarena_masim.engines.overlap_limits import Limits, content_words
from memarena_masim.facts.catalogue import base, did
from memarena_masim.phrases.grammar import Scope, Voice, phrase
from memarena_masim.questions.book import Book, Draft
from memarena_masim.questions.derive import Asked
from memarena_masim.questions.question_bank import QuestionBank, filled, question_bank
from memarena_masim.questions.wording import Wanted
from memarena_masim.rng import Stream

LITERAL = 0.8
"""Share of the questions that name a thing by its own words, where the limits allow it; the others describe it."""
_LITERAL = {
    Family.CLOZE: 0.15,
    Family.COUNTERFACTUAL: 0.6,
    Family.METADATA: 0.75,
    Family.ANAPHORA: 0.95,
    Family.CONFABULATION: 0.7,
    Family.WITNESS: 0.7,
}
"""The same by family: where the question holds more, or fewer, words of its evidence besides the thing."""
TRIES = 24
_LONGEST_NAMED = 2
"""Words of content of a thing that a question may name as it is."""
_VALUE: TypeAdapter[Value] = TypeAdapter(Value)
_ID = re.compile(r"\b(?:sess|fact|stmt|q|turn)_[0-9a-f]{6,}")


def harden(
    asked: Sequence[Asked], book: Book, texts: Mapping[str, str], done: frozenset[str] = frozenset()
) -> dict[str, int]:
    """Word the questions again, in place; returns counts for the report.

    ``texts`` gives evidence turns by turn id; ``done`` are ids of questions that an engine has worded already.
    """
    return _Hardener(book, texts).run([question for question in asked if question.instance_id not in done])


class _Hardener:
    def __init__(self, book: Book, texts: Mapping[str, str]) -> None:
        self._book, self._texts = book, texts
        self._bank: QuestionBank = question_bank(book.config.banks)
        self._counts: Counter[str] = Counter()
        world = book.world
        shown = [person.name for person in world.people] + [location.name for location in world.places.values()]
        shown += [group.name for group in world.groups]
        self._names = frozenset(word for name in shown for word in tokens_of(name))

    def run(self, asked: Sequence[Asked]) -> dict[str, int]:
        pairs: dict[Hashable, str] = {}
        for question in sorted(asked, key=lambda question: question.draft.no_evidence):
            draft = question.draft
            if draft.wanted is None:
                self._counts["left_plain"] += 1
                continue
            key = _asked_alike(draft)
            again = draft.no_evidence or draft.family is Family.PERMISSION
            worded = pairs.get(key) if again else None
            if worded is None:  # else: one more of those who are asked the same
                worded = self._worded(question.instance_id, draft, draft.wanted)
                if key is not None:
                    pairs[key] = worded
            draft.query = worded
            self._counts["reworded"] += 1
        return dict(sorted(self._counts.items()))

    def _worded(self, instance_id: str, draft: Draft, wanted: Wanted) -> str:
        stream = Stream(self._book.config.key, "hardening", instance_id)
        turns = dict.fromkeys(stated.turn_id for stated in draft.evidence)
        limits = Limits.of([self._texts[turn] for turn in turns], self._names)
        literal = stream.chance(_LITERAL.get(draft.family, LITERAL))
        best: tuple[str, str] | None = None
        for attempt in range(TRIES):
            text = self._draw(stream, wanted, literal and attempt < TRIES // 2)
            fault = self._fault(text, draft, wanted) or limits.fault(_stem(text))
            if fault is None:
                return text
            self._counts[f"dropped_{fault}"] += 1
            if fault in ("containment", "trigram", "jaccard") and (best is None or attempt >= TRIES // 2):
                best = (text, fault)
        if best is None:
            self._counts["kept_plain"] += 1
            return draft.query
        self._counts[f"kept_over_{best[1]}"] += 1
        return best[0]

    def _fault(self, text: str, draft: Draft, wanted: Wanted) -> str | None:
        words = normal(_stem(text))
        own = normal(draft.query)
        if any(phrase_occurs(name, own) and not phrase_occurs(name, words) for name in self._book.names.values()):
            return "loses_a_name"
        if _ID.search(text):
            return "names_an_id"
        if any(names_value(value, _stem(text), self._today(draft)) for value in _golds(draft.truth)):
            return "states_the_gold"
        if len(content_words(wanted.item, self._names)) > _LONGEST_NAMED and normal(wanted.item) in words:
            return "trigram"  # long items are described in every family, so that this gives nothing away
        return None

    def _today(self, draft: Draft) -> date:
        return self._book.config.calendar_epoch

    # ------------------------------------------------------------------ drawing

    def _draw(self, stream: Stream, wanted: Wanted, literal: bool) -> str:
        slots = dict(wanted.slots)
        if wanted.attribute in self._bank.details:
            self._detail_slots(stream, wanted, literal, slots)
        elif wanted.kind == "find":
            # Long names of sources are never said whole; most keep the word for what it was.
            whole = literal and len(content_words(wanted.item, self._names)) <= _LONGEST_NAMED
            slots["source"] = wanted.item if whole else self._bank.source(wanted.item, literal and stream.chance(0.7))
            slots["event"] = self._fate(slots.pop("did"), literal and stream.chance(0.7))
        else:
            slots["base"], slots["event"] = self._event(wanted, literal)
            if wanted.other is not None:
                slots["event2"] = self._event(wanted.other, stream.chance(LITERAL))[1]
        slots["subject"] = "I" if wanted.form == "own" else wanted.subject
        rule = self._bank.kinds.rules[f"ask.{wanted.kind}"]
        text = phrase(rule.draw(stream), Scope(stream, Voice(), slots))
        text = text[0].upper() + text[1:]
        return f"{text}\n{slots['options']}" if "options" in slots else text

    def _detail_slots(self, stream: Stream, wanted: Wanted, literal: bool, slots: dict[str, str]) -> None:
        words = self._bank.details[wanted.attribute]
        thing = words.before + wanted.item if literal else self._bank.items[wanted.attribute, wanted.item]
        value = {"v": "____", "n": "____"} if wanted.kind == "gap" else {name: slots.get(name, "") for name in "vn"}
        inner = {"it": filled(thing, wanted.form, wanted.subject, {}), **value}
        slots["clause"] = filled(stream.pick(words.clauses), wanted.form, wanted.subject, inner)
        slots["plain"] = filled(stream.pick(words.plain), wanted.form, wanted.subject, inner)

    def _event(self, wanted: Wanted, literal: bool) -> tuple[str, str]:
        """The verb phrase of a happening in its base form and in the past."""
        if literal:
            return wanted.item, dict(wanted.slots)["did"]
        line = next(other for name, other in self._bank.happenings.items() if base(name) == wanted.item)
        return base(line), did(line)

    def _fate(self, words: str, literal: bool) -> str:
        if literal:
            return words
        return did(next(other for fate, other in self._bank.fates.items() if did(fate) == words))


def _asked_alike(draft: Draft) -> Hashable:
    """What questions have in common that must be put in the same words; None if there are no such others."""
    if draft.family is Family.WITNESS:
        return draft.fact_id
    if draft.family is Family.PERMISSION:
        assert draft.wanted is not None
        return draft.ego, draft.fact_id, draft.wanted.form
    return None


def _stem(text: str) -> str:
    """A question without the lettered options below it."""
    return text.split("\nA) ", 1)[0]


def _golds(truth: Mapping[str, Any]) -> Iterator[Value]:
    for key in ("values", "changed_values"):
        for row in truth.get(key, ()):
            yield _VALUE.validate_python(row)
