"""Puts questions as people would: drawn from the question banks, checked, drawn again.

Each question calls what it asks for by its own name, by another name, or by a description, in the shares that the
configuration sets. A draw that states the gold, names an id or repeats its evidence is dropped, and so is another name
that comes up in any talk where the right answer is that nothing was said. What was dropped, and why, is counted for the
report of the data set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from memarena_dataset.checks.overlap import MAX_JACCARD, jaccard
from memarena_dataset.model import Family
from memarena_dataset.values import Value
from memarena_dataset.values.phrases import phrase_occurs
from memarena_dataset.values.possible import names_value
from pydantic import TypeAdapter

from memarena_masim.facts.catalogue import base, did, in_person
from memarena_masim.phrases.grammar import Scope, Voice, phrase
from memarena_masim.questions.book import Book, Draft
from memarena_masim.questions.derive import Asked
from memarena_masim.questions.question_bank import Called, DetailWords, Wording, filled, question_bank
from memarena_masim.questions.wording import Wanted
from memarena_masim.rng import Stream

TRIES = 12
_VALUE: TypeAdapter[Value] = TypeAdapter(Value)
_ID = re.compile(r"\b(?:sess|fact|stmt|q|turn)_[0-9a-f]{6,}")
_SENTENCE_START = re.compile(r"(?<=[?!.] )[a-z]")
_IT = re.compile(r" it\b")


def put(
    asked: Sequence[Asked], book: Book, texts: Mapping[str, str], done: frozenset[str] = frozenset()
) -> dict[str, int]:
    """Put the questions in words, in place; returns counts for the report.

    ``texts`` gives the turns of evidence sessions by turn id; ``done`` are ids of questions that an engine has worded
    already. Every question is marked with how it names what it asks for.
    """
    return _Phrasing(book, texts).run(asked, done)


class _Phrasing:
    def __init__(self, book: Book, texts: Mapping[str, str]) -> None:
        self._book = book
        self._bank = question_bank(book.config.words)
        self._counts: Counter[str] = Counter()
        self._happenings = {base(name): called for name, called in self._bank.happenings.items()}
        self._sessions: dict[str, list[str]] = {}
        for turn_id, text in texts.items():
            self._sessions.setdefault(turn_id.rsplit("_t", 1)[0], []).append(text)

    def run(self, asked: Sequence[Asked], done: frozenset[str]) -> dict[str, int]:
        wordings = self._shared_out([question for question in asked if question.instance_id not in done])
        alike: dict[Hashable, tuple[str, Wording]] = {}
        for question in sorted(asked, key=lambda question: question.draft.no_evidence):
            draft, wording = question.draft, wordings.get(question.instance_id, "plain")
            if draft.wanted is not None and question.instance_id not in done:
                key = _asked_alike(question)
                if key not in alike:  # else: one more of those who are asked the same
                    alike[key] = self._worded(question.instance_id, draft, draft.wanted, wording)
                draft.query, wording = alike[key]
            draft.extra["wording"] = wording
            self._counts[wording] += 1
        return dict(sorted(self._counts.items()))

    # ------------------------------------------------------------------ shares

    def _shared_out(self, asked: Sequence[Asked]) -> dict[str, Wording]:
        """Choose the questions with another name or a description: equal shares of every family and of D5's halves."""
        strata: dict[tuple[str, bool], dict[Hashable, list[Asked]]] = {}
        for question in asked:
            draft = question.draft
            half = draft.family is Family.CONFABULATION and draft.no_evidence
            strata.setdefault((draft.family.value, half), {}).setdefault(_asked_alike(question), []).append(question)
        result: dict[str, Wording] = {}
        others: tuple[tuple[Wording, int], ...] = tuple(
            zip(("description", "other_name"), reversed(self._book.config.wording), strict=False)
        )
        short = dict.fromkeys(("description", "other_name"), 0.0)
        for stratum, units in sorted(strata.items()):
            left = Stream(self._book.config.key, "wordings", *map(str, stratum)).shuffled(list(units.values()))
            for wording, percent in others:
                short[wording] += percent / 100 * sum(map(len, units.values()))
                for unit in list(left):
                    if short[wording] >= len(unit) / 2 and self._has(unit[0].draft.wanted, wording):
                        result |= dict.fromkeys((question.instance_id for question in unit), wording)
                        short[wording] -= len(unit)
                        left.remove(unit)
        return result

    def _has(self, wanted: Wanted | None, wording: Wording) -> bool:
        return wanted is not None and bool(self._called(wanted).by(wording, wanted.item))

    def _called(self, wanted: Wanted) -> Called:
        if wanted.attribute in self._bank.details:
            return self._bank.items[wanted.attribute, wanted.item]
        return self._bank.sources[wanted.item] if wanted.kind == "find" else self._happenings[wanted.item]

    # ------------------------------------------------------------------ one question

    def _worded(self, instance_id: str, draft: Draft, wanted: Wanted, wording: Wording) -> tuple[str, Wording]:
        """Draw a text of a question until it has no fault; return it with its wording, or the draft's plain text."""
        stream = Stream(self._book.config.key, "phrasing", instance_id)
        sessions = dict.fromkeys(stated.session_id for stated in draft.evidence)
        evidence = [text for session in sessions for text in self._sessions[session]]
        named_in_full = draft.family is Family.PERMISSION  # the asker need not be on first-name terms
        for tried in dict.fromkeys((wording, "plain")):
            for _ in range(TRIES):
                text, thing = self._draw(stream, wanted, tried, named_in_full)
                fault = self._fault(text, draft, evidence)
                if tried == "other_name" and draft.family in (Family.CONFABULATION, Family.WITNESS):
                    fault = fault or ("heard_anywhere" if phrase_occurs(thing, self._book.catalogue.common) else None)
                if fault is None:
                    return text, tried
                self._counts[f"dropped_{fault}"] += 1
        self._counts["kept_as_drafted"] += 1
        return draft.query, "plain"

    def _fault(self, text: str, draft: Draft, evidence: Sequence[str]) -> str | None:
        stem = text.split("\nA) ", 1)[0]
        if _ID.search(stem):
            return "names_an_id"
        if any(names_value(value, stem, self._book.config.calendar_epoch) for value in _golds(draft.truth)):
            return "states_the_gold"
        return "repeats_the_evidence" if evidence and jaccard(stem, evidence) >= MAX_JACCARD else None

    # ------------------------------------------------------------------ drawing

    def _draw(self, stream: Stream, wanted: Wanted, wording: Wording, in_full: bool) -> tuple[str, str]:
        """Return the text of a question, and the name that it uses for the thing."""
        slots = dict(wanted.slots)
        if slots.get("teller"):
            slots["teller"] = self._book.called[slots["teller"]]
        subject = wanted.subject if in_full else self._book.called.get(wanted.subject, wanted.subject)
        slots |= {"subject": "I" if wanted.form == "own" else subject, "they": in_person("$they", wanted.form)}
        thing = stream.pick(self._called(wanted).by(wording, wanted.item))
        rule = self._bank.kinds.rules[f"ask.{wanted.kind}"]
        if wanted.attribute in self._bank.details:
            slots |= self._of_detail(stream, wanted, thing, wording, subject, slots)
        elif wanted.kind == "find":
            # Either where it came from or what became of it goes by another name, so that the other is known.
            event = slots.pop("did")
            if wording == "other_name" and stream.chance(0.5):
                thing, event = wanted.item, stream.pick(self._bank.fates[event].by(wording, event))
            slots |= {"source": thing, "event": event, "gapped": _IT.sub("", event, count=1)}
        else:
            slots |= {"base": base(thing), "event": slots["did"] if wording == "plain" else did(thing)}
            if wanted.other is not None:
                slots["event2"] = dict(wanted.other.slots)["did"]
        text = phrase(rule.draw(stream), Scope(stream, Voice(), slots))
        text = _SENTENCE_START.sub(lambda match: match.group().upper(), text[0].upper() + text[1:])
        return (f"{text}\n{slots['options']}" if "options" in slots else text), thing

    def _of_detail(
        self, stream: Stream, wanted: Wanted, thing: str, wording: Wording, subject: str, slots: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the slots of a question about a detail: question, clause and topic in the person of the subject."""
        words = self._bank.details[wanted.attribute]
        value = {"v": "____", "n": "____"} if wanted.kind == "gap" else {name: slots.get(name, "") for name in "vn"}
        # A teller who speaks of themselves is named once: "when did Anton tell me what they paid".
        form = "they" if slots.get("teller") == subject else wanted.form
        inner = {"it": filled(words.before + thing, form, subject, {}), **value}
        if wording != "description":
            inner["own"] = f"$my {thing.removeprefix('the ')}"

        def line(lines: Sequence[str]) -> str:
            fitting = [text for text in lines if "own" in inner or "$own" not in text]
            return filled(stream.pick(fitting), form, subject, inner) if fitting else ""

        return _lines(words, line, stream)


def _lines(words: DetailWords, line: Any, stream: Stream) -> dict[str, str]:
    question, clause, about = line(words.ask), line(words.clause), line(words.about)
    by_name = about and stream.chance(0.5)
    return {
        "question": _lowered(question),
        "clause": clause,
        "told": f"about {about}" if by_name else clause,
        "plain": line(words.plain),
        "now": _lowered(line(words.now)),
        "earlier": _lowered(line(words.earlier)),
    }


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _asked_alike(question: Asked) -> Hashable:
    """Return the key of questions that must be put in the same words; else the question's id."""
    draft = question.draft
    if draft.family is Family.WITNESS:
        return draft.fact_id
    if draft.family is Family.PERMISSION:
        assert draft.wanted is not None
        return draft.ego, draft.fact_id, draft.wanted.form
    return question.instance_id


def _golds(truth: Mapping[str, Any]) -> Iterator[Value]:
    for key in ("values", "changed_values"):
        for row in truth.get(key, ()):
            yield _VALUE.validate_python(row)
