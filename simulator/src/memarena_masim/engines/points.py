"""Lists what each turn of a session has to say, and checks whether a text says it (for the LLM engine)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from memarena_dataset.values.phrases import normal, phrase_occurs
from memarena_dataset.values.possible import names_value

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.phrases.grammar import Scope, Voice, phrase
from memarena_masim.plan.model import SessionPlan, Statement
from memarena_masim.plan.state import Role, StatedFact
from memarena_masim.rng import Stream

_VALUE_SLOTS = ("v", "n")
_CLAUSE_SLOTS = ("about", "topic", "doing")
"""Slots that only the other speaker's question or reaction uses."""
_VERB_SLOTS = ("did", "do")
_MEANT = ("tie", "change")
"""Kinds whose meaning depends on more than their values: "not friends", "no longer"."""


@dataclass(frozen=True)
class Point:
    """A planned statement: the phrase banks' sentence for it, and what another wording must keep.

    ``verbatim`` is a sentence that must be said literally (a wish for discretion), "" for none.
    """

    statement_id: str
    kind: str
    turn: int
    sentence: str
    verbatim: str
    said_on: date
    stated: StatedFact
    slots: tuple[tuple[str, str], ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the phrase banks' sentences: the statement's, and ``verbatim`` if there is one."""
        return tuple(text for text in (self.sentence, self.verbatim) if text)

    @cached_property
    def _must(self) -> tuple[str, ...]:
        return _taken_over(self.slots, self.sentence)

    @cached_property
    def _typed(self) -> bool:
        """Whether the banks' sentence names the value, so that another wording can be checked for it."""
        return names_value(self.stated.value.value, self.sentence, self.said_on)

    @cached_property
    def exact(self) -> bool:
        """Whether only the banks' own sentence is accepted, since its value cannot be read from another wording."""
        if self.kind in _MEANT:
            return True
        return not self._typed and self.stated.role is not Role.FATE and not self._dated

    @cached_property
    def _dated(self) -> bool:
        return any(name == "when" and phrase_occurs(text, normal(self.sentence)) for name, text in self.slots)

    def said_in(self, text: str) -> bool:
        """Whether ``text`` makes the statement: it names value, item and person, and does not name a fate's find."""
        words = normal(text)
        if self.verbatim and normal(self.verbatim).strip() not in words:
            return False
        hidden = self.stated.role is Role.FATE and phrase_occurs(self.stated.value.text, words)
        if hidden:
            return False
        if normal(self.sentence).strip() in words:
            return True
        if self.exact or not all(phrase_occurs(part, words) for part in self._must):
            return False
        return not self._typed or names_value(self.stated.value.value, text, self.said_on)


@dataclass(frozen=True)
class Ask:
    """A question that the other speaker must ask in the turn before a statement."""

    turn: int
    sentence: str
    slots: tuple[tuple[str, str], ...]

    @cached_property
    def _must(self) -> tuple[str, ...]:
        return _taken_over(self.slots, self.sentence)

    def said_in(self, text: str) -> bool:
        """Whether ``text`` asks about the same thing."""
        words = normal(text)
        if normal(self.sentence).strip() in words:
            return True
        return bool(self._must) and "?" in text and all(phrase_occurs(part, words) for part in self._must)


def points_of(config: WorldConfig, plan: SessionPlan, stated: dict[str, StatedFact]) -> tuple[Point, ...]:
    """Return the statements of a session, each worded by the phrase banks from its own random stream."""
    said_on = config.calendar_epoch + timedelta(days=plan.day)
    points = []
    for statement in plan.statements:
        fact = stated[statement.statement_id]
        kind = fact.role.value if fact.role is not Role.TELL else fact.fact.kind.value
        level = _worded(config, plan, statement, f"level.{statement.level}") if statement.level else ""
        sentence = _worded(config, plan, statement, statement.frame)
        points.append(
            Point(statement.statement_id, kind, statement.turn, sentence, level, said_on, fact, statement.slots)
        )
    return tuple(points)


def asks_of(config: WorldConfig, plan: SessionPlan) -> tuple[Ask, ...]:
    """Return the questions that must precede a statement of a session."""
    return tuple(
        Ask(statement.turn - 1, _worded(config, plan, statement, statement.prompt), statement.slots)
        for statement in plan.statements
        if statement.prompt and statement.turn
    )


def _worded(config: WorldConfig, plan: SessionPlan, statement: Statement, rule: str) -> str:
    """Return a rule of the facts bank, expanded to a sentence."""
    stream = Stream(config.key, "statement", statement.statement_id, rule)
    slots = {"weekday": plan.weekday, "daypart": plan.daypart, **dict(statement.slots)}
    scope = Scope(stream, Voice(0), slots)
    text = phrase(scope.draw(catalogue(config.words).bank.rules[rule]), scope)
    text = text.rstrip(",;: ")
    return text[0].upper() + text[1:] + ("" if text[-1] in ".?!" else ".")


def _taken_over(slots: tuple[tuple[str, str], ...], sentence: str) -> tuple[str, ...]:
    """Return the phrases from the plan in the banks' sentence, without the value: another wording must keep them."""
    words, points = normal(sentence), []
    for name, text in slots:
        if not text or name in (*_VALUE_SLOTS, *_CLAUSE_SLOTS):
            continue
        kept = _without_verb(text) if name in _VERB_SLOTS else text.split()[0] if name == "subject" else text
        if phrase_occurs(kept, words):
            points.append(kept)
    return tuple(dict.fromkeys(points))


def _without_verb(text: str) -> str:
    """Return the words of a verb phrase that do not depend on its tense: ``the piano`` for ``moved the piano``."""
    without_verb = re.sub(r"^\S+\s+", "", text)
    return without_verb if " " in without_verb else text
