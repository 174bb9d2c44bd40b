"""Reads from a question and its evidence what decides which of several claims answers it: whose value, which version.

An answer may state the right value as another person's or as a former one: then it answers only a question for that
person or version. The result depends on question and evidence alone and is cached between answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property

from memarena_dataset.gold import ConflictGold, CounterfactualGold, OpenGold
from memarena_dataset.values import DurationValue, OrderValue, SetValue, Value
from memarena_dataset.values.match import ScalarValue, occurrences
from memarena_dataset.values.names import proper_names
from memarena_dataset.values.reading import read_text
from memarena_dataset.values.words import content_words, stem

from memarena.log.records import EvidenceSession, Question


class Version(StrEnum):
    """The version of a value that has changed: the current one or the former one."""

    CURRENT = "current"
    FORMER = "former"


_EXCLUDED = re.compile(
    r"\bnot (?:a|the) (?:former|present|current|old|new) (?:one|answer)\b|\bleaving out what no longer holds\b"
    r"|\bthe change aside\b|\bbefore there was a change\b|\bthere was a (?:revision|change)\b",
    re.IGNORECASE,
)
"""Versions that a question excludes: ``not the former answer``, ``leaving out what no longer holds``."""
_FORMER = re.compile(
    r"\b(?:former(?:ly)?|originally|initially|at first|previous (?:answer|version|value|word)|previously"
    r"|earlier (?:word|answer|version)|no longer holds"
    r"|(?:before|prior to) (?:it was|the|that|any|this) ?(?:change|changed|revision|revised|update)?"
    r"|used to|in the beginning|old (?:answer|version|value))\b",
    re.IGNORECASE,
)
"""Words that ask for the version before a change: ``originally``, ``before it was changed``."""
_CURRENT = re.compile(
    r"\b(?:latest (?:state|answer|version|information|word|news|i heard)|at present"
    r"|present(?:ly)? (?:answer|version)|as things stand|by now|currently|current (?:answer|version)"
    r"|after the (?:change|revision)|these days|nowadays|as of (?:now|today)|no longer what|up to date)\b|, now\b",
    re.IGNORECASE,
)
"""Words that ask for the version after a change: ``as things stand``, ``the latest answer``."""
_COUNTED = re.compile(
    r"\b(?:how many|count(?:ed)?|number of|difference)\b.*?\b(minute|hour|day|week|month|year)s\b",
    re.IGNORECASE | re.DOTALL,
)
"""The unit of time in which a question counts: ``how many weeks``."""
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|myself)\b")
_TALK = ("speaker", "participants")
"""Attributes whose answer is a person who spoke or listened."""


@dataclass(frozen=True)
class OpenQuestion:
    """A question with its gold, read once.

    Its typed values are scalars only; sets and orders are judged separately.
    """

    record: Question
    evidence: tuple[EvidenceSession, ...]
    gold: OpenGold

    @cached_property
    def required(self) -> tuple[ScalarValue, ...]:
        """The gold's typed values, each of which a right answer states."""
        return scalars(self.gold.values)

    @cached_property
    def barred(self) -> tuple[ScalarValue, ...]:
        """The values of a counterfactual question's wrong premise."""
        return scalars(self.gold.premise_values)

    @cached_property
    def changed(self) -> tuple[ScalarValue, ...]:
        """The values of a conflict's other version."""
        return scalars(self.gold.other_values)

    @property
    def text(self) -> str:
        """The question's words."""
        return self.record.question_text

    @cached_property
    def today(self) -> date | None:
        """The day on which it is asked."""
        return day_of(self.record.asked_at)

    @cached_property
    def version(self) -> Version | None:
        """The version that the question asks for; None if it names none."""
        if self.gold.kind != "text":
            return None
        # Excluded versions first: "not the former answer" asks for the current one.
        bare = _EXCLUDED.sub(" ", self.text)
        if _FORMER.search(bare):
            return Version.FORMER
        return Version.CURRENT if _CURRENT.search(bare) else None

    @cached_property
    def unit(self) -> str | None:
        """The unit of time in which the question counts (``how many weeks``), or None."""
        match = _COUNTED.search(self.text)
        counts = any(isinstance(value, DurationValue) for value in self.required)
        return match.group(1).lower() if match and counts else None

    @cached_property
    def people(self) -> frozenset[str]:
        """Names of all known people, each part of a name separately, in lower case."""
        names = {self.record.ego_name, self.record.asker_name, *self._named_in_question}
        names |= {turn.speaker.removesuffix("'s assistant") for session in self.evidence for turn in session.turns}
        return frozenset(part for name in names for part in name.lower().split())

    @cached_property
    def own(self) -> bool:
        """Whether the value is the asker's."""
        return not self._named_in_question and _FIRST_PERSON.search(self.text) is not None

    @cached_property
    def subjects(self) -> frozenset[str]:
        """Parts of the names of the person whose value it is, in lower case."""
        names = self._named_in_question or (self.record.asker_name, self.record.ego_name)
        return frozenset(part for name in names for part in name.lower().split())

    @cached_property
    def about_talk(self) -> bool:
        """Whether the question asks for a person who spoke or listened."""
        return getattr(self.gold, "attribute", None) in _TALK

    @cached_property
    def sources(self) -> tuple[str, str] | None:
        """First names, in lower case, of the people who told a conflict's original and its other version."""
        gold = self.gold
        if not isinstance(gold, ConflictGold) or not gold.source_agent or not gold.conflicting_agent:
            return None
        return gold.source_agent.split()[0].lower(), gold.conflicting_agent.split()[0].lower()

    @cached_property
    def question_words(self) -> frozenset[str]:
        """Stems of the question's own words."""
        return frozenset(content_words(self.text))

    @cached_property
    def matters(self) -> frozenset[str]:
        """Stems of the question's words without the names in it."""
        return self.question_words - {stem(part) for name in proper_names(self.text) for part in name.name}

    @cached_property
    def turns(self) -> tuple[str, ...]:
        """Texts of the evidence's turns."""
        return tuple(turn.text for session in self.evidence for turn in session.turns)

    @cached_property
    def evidence_words(self) -> frozenset[str]:
        """Stems of the words of the evidence."""
        return frozenset(word for text in self.turns for word in content_words(text))

    @cached_property
    def matter_words(self) -> frozenset[str]:
        """Stems of words about the question's subject: the question's, and those of turns that state the value."""
        read = ((turn, read_text(turn, self.today)) for turn in set(self.turns))
        stating = (turn for turn, text in read if any(occurrences(v, text, self.unit) for v in self.required))
        return self.question_words | {word for text in stating for word in content_words(text)}

    @cached_property
    def question_mentions(self) -> frozenset[str]:
        """Words of the question's own typed values, which an answer may repeat."""
        return frozenset(self.text[m.start : m.end].lower() for m in read_text(self.text, self.today).mentions)

    @cached_property
    def _named_in_question(self) -> tuple[str, ...]:
        """Names in the question that are people: speakers of the evidence and full names, but no part of a value."""
        if isinstance(self.gold, CounterfactualGold | ConflictGold) or self.required:
            values = " ".join(describe(value).lower() for value in (*self.required, *self.barred, *self.changed))
            names = (" ".join(name.name) for name in proper_names(self.text))
            speakers = {part for s in self.evidence for t in s.turns for part in t.speaker.lower().split()}
            return tuple(n for n in names if n not in values and (n.split()[0] in speakers or len(n.split()) > 1))
        return ()


def day_of(moment: str) -> date | None:
    """Return the day of an RFC 3339 moment; None if it is not one."""
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None


def describe(value: Value) -> str:
    """Return a value in a few words, for reasons."""
    if isinstance(value, SetValue):
        return " + ".join(describe(m) for m in value.members)
    if isinstance(value, OrderValue):
        return " → ".join(i.text for i in value.items)
    fields = value.model_dump(exclude={"type", "aliases"}, exclude_none=True)
    return f"{value.type} {' '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in fields.values())}"


def scalars(values: Sequence[Value]) -> tuple[ScalarValue, ...]:
    """Return the scalar values; sets and orders are judged separately."""
    return tuple(v for v in values if not isinstance(v, SetValue | OrderValue))


_MAX_CACHED = 4096
"""Most questions in the cache; a full cache is emptied."""
_CACHE: dict[tuple[str, str, int, int], OpenQuestion] = {}
"""Questions as read, by the question's id, text and object, and the number of its evidence sessions."""


def open_question(record: Question, evidence: tuple[EvidenceSession, ...]) -> OpenQuestion:
    """Return an open question as read. Recent ones are cached: many cells answer the same question."""
    key = (record.instance.instance_id, record.question_text, id(record), len(evidence))
    cached = _CACHE.get(key)
    if cached is not None and cached.record is record and cached.evidence == evidence:
        return cached
    gold = record.instance.gold
    assert isinstance(gold, OpenGold)
    if len(_CACHE) >= _MAX_CACHED:
        _CACHE.clear()
    _CACHE[key] = question = OpenQuestion(record, evidence, gold)
    return question
