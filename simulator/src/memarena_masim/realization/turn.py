"""Builds one turn: its sentences in order, what the next turn can refer to, and how the subject was last named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from memarena_masim.config import Half
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.phrases.grammar import Scope, Sequence_, Voice, phrase
from memarena_masim.phrases.library import Library, library
from memarena_masim.phrases.matters import Deed
from memarena_masim.plan.model import SessionPlan, Speaker, Statement
from memarena_masim.realization.record import Record, Said, last_noun, marked, to_me, to_you
from memarena_masim.rng import Stream

_SENTENCE_START = re.compile(r"(^\"?|[.?!] \"?)([a-z])")
_TWICE = re.compile(r"\b([A-Za-z']+) \1\b", re.IGNORECASE)
_LEAD_IN = re.compile(r"^(?:so|well|and|oh),? ", re.IGNORECASE)
TAGS = 0.8
"""How much rarer a word behind a sentence is than one before it."""
_SAID_BY_NAME = 0.35
"""Share of the places that could say "it" but name the thing again."""


@dataclass(frozen=True, slots=True)
class Hook:
    """What a turn leaves for the next one.

    ``kind`` is ``told``, ``question``, ``raised`` (the other one was asked for the thread's matter), ``plan``,
    ``advice``, ``view`` or ``mine``. ``key`` is the noun that was dwelt on, in its speaker's words. A question carries
    its answers, a plan its verb phrase (base form and ``-ing``).
    """

    kind: str
    key: str = ""
    question: str = ""
    answers: tuple[Sequence_, ...] = ()
    deed: tuple[str, str] = ("", "")


@dataclass(slots=True)
class Talk:
    """What a session's turns share."""

    plan: SessionPlan
    stream: Stream
    library: Library
    slots: dict[str, str]
    used: set[int] = field(default_factory=set)
    record: Record | None = None
    hook: Hook | None = None
    stated: tuple[Statement, ...] = ()
    """Facts of the turn before."""


class TurnText:
    """Sentences of one turn by one speaker."""

    def __init__(self, talk: Talk, record: Record, speaker: int, listener: int) -> None:
        self._talk, self.record, self.speaker = talk, record, speaker
        self.who: Speaker = talk.plan.speakers[speaker]
        self._slots = {
            **talk.slots,
            "you": talk.plan.speakers[listener].first_name,
            "kin": record.kin[speaker],
        }
        self.sentences: list[str] = []
        self.words = 0
        self.hook: Hook | None = None
        self.it = False
        """Whether the sentence before named the thing, so that "it" is understood."""
        self.item = ""
        """What the last line drew from the topic's lists."""
        self.lead = ""
        """Words that the next sentence begins with."""

    # ---------------------------------------------------------------- parts

    def render(self, sequence: Sequence_, **slots: str) -> str:
        """Any line of the banks, with this turn's slots."""
        x = self._x()
        scope = self._scope({"x": x, "full": self.record.full(self.speaker), **slots})
        text = phrase(sequence, scope)
        self.it = x in text or (" it" in text and self.it)
        self.item = scope.items[-1] if scope.items else ""
        return text

    def rule(self, name: str, **slots: str) -> str:
        """A line of a rule of the dialogue banks."""
        alternative = self._scope({}).draw(self._talk.library.dialogue.rules[name])
        return self.render(alternative, **slots)

    def _x(self) -> str:
        if self.it and not self._talk.stream.chance(_SAID_BY_NAME):
            return "it"
        if not self.record.named:
            return self.record.full(self.speaker)
        return self.record.short(self.speaker)

    def _scope(self, slots: Mapping[str, str]) -> Scope:
        talk = self._talk
        return Scope(talk.stream, Voice(self.who.leaning), {**self._slots, **slots}, self.record.topic.bank, talk.used)

    # ---------------------------------------------------------------- sentences

    def say(self, text: str, small_words: bool = False) -> None:
        """Add a sentence. With ``small_words``, in the share of the speaker's habit, a word or two before it."""
        if self.lead:
            text, self.lead = f"{self.lead}: {text}", ""
        elif small_words and self._talk.stream.chance(self.who.fillers) and not self.who.assistant:
            text = f"{self.rule('opener')}, {text}"
        if small_words and text[-1] not in ".?!\"'" and self._talk.stream.chance(TAGS * self.who.fillers):
            text = f"{text}, {self.rule('tag')}"
        self.sentences.append(finish(_TWICE.sub(r"\1", text)))
        self.words += text.count(" ") + 1

    def frame(self, name: str, small_words: bool = False, **slots: str) -> str:
        """Say a line of a rule; returns its text."""
        text = self.rule(name, **slots)
        self.say(text, small_words)
        return text

    def told(self, frame: str, clause: Sequence_, kind: str = "told") -> None:
        """Say a clause of the matter inside a line of ``frame``, and leave its noun to be taken up."""
        named = "full" in frame_slots(self._talk.library.banks, frame)
        if named:
            self.record.named = self.it = True
        said = marked(self.render(clause))
        self.record.named = True
        held = self.it
        self.say(self.rule(frame, c=said.text), small_words=not named)
        self.it = held
        key = self._key(said)
        if key and key not in self.record.keys:
            self.record.keys.append(key)
        self.hook = Hook(kind, key)

    def deed(self, frame: str, deed: Deed, kind: str, other: bool) -> None:
        """Say a plan, in the words of the one whose plan it is (``other``: it is the one spoken to)."""
        base, doing = (marked(self.render(one)).text for one in (deed.base, deed.doing))
        self.record.named = True
        if other:
            base, doing = to_you(base), to_you(doing)
        self.say(self.rule(frame, vp=base, ving=doing), small_words=not other)
        heard = (to_me(base), to_me(doing)) if other else (to_you(base), to_you(doing))
        self.hook = Hook(kind, deed=heard)

    def free(self, frame: str, kind: str = "mine") -> None:
        """Say a line that draws on the topic alone; what ends it may be taken up."""
        text = self.rule(frame)
        key = last_noun(self.item)
        self.say(text, small_words=True)
        self.hook = Hook(kind, key)

    def _key(self, said: Said) -> str:
        key = said.key or last_noun(said.text)
        return "" if key.lower() in ("it", "that", "this") else key

    # ---------------------------------------------------------------- facts

    def state(self, statement: Statement, linked: bool) -> None:
        """Say a planned fact, with a word on how it comes up, and the wish for secrecy where there is one."""
        slots = dict(statement.slots)
        text = self._fact(statement.frame, slots)
        if linked:
            text = f"{self._fact(self._link_of(statement), slots)} {_LEAD_IN.sub('', text)}"
        self.say(text)
        if statement.level:
            self.say(self._fact(f"level.{statement.level}", slots))
        self.it = False

    def prompt(self, statement: Statement) -> None:
        """Ask for a fact that is stated in the next turn."""
        self.say(self._fact(statement.prompt, dict(statement.slots)))
        self.hook = None

    def react_to(self, statement: Statement) -> None:
        """Take up a fact without giving its value."""
        rule, slots = _reaction(self._talk.library, statement)
        self.say(self._fact(rule, slots))
        self.it = False

    def _fact(self, rule: str, slots: Mapping[str, str]) -> str:
        scope = self._scope({"x": "it", "full": "it", **slots})
        rules = catalogue(self._talk.library.banks).bank.rules
        own = Scope(scope.stream, scope.voice, scope.slots, scope.topic, scope.used)
        return phrase(own.draw(rules[rule]), own)

    def _link_of(self, statement: Statement) -> str:
        found = catalogue(self._talk.library.banks)
        attribute = statement.frame.split(".")[1]
        kind = found.attributes[attribute].category if attribute in found.attributes else _KINDS.get(attribute, "")
        rule = f"link.{kind}"
        return rule if rule in found.bank.rules and self._talk.stream.chance(0.6) else "link.any"


_KINDS = {
    "happening": "happening", "find": "possession", "fate": "possession", "friends": "tie", "not_friends": "tie",
}  # fmt: skip


def _reaction(library: Library, statement: Statement) -> tuple[str, dict[str, str]]:
    """The rule that takes a statement up, and its slots."""
    found = catalogue(library.banks)
    form, attribute, person = statement.frame.split(".")
    slots = dict(statement.slots)
    if attribute in found.community:
        kind = found.community[attribute]
        return "react.community", slots | {"about": kind.fill(kind.about, "you", "", slots["group"])}
    if attribute in ("friends", "not_friends"):
        return "react.tie", slots
    if attribute in ("happening", "find", "fate"):
        return f"react.{attribute}", slots
    if form == "change":
        return "react.change", slots
    rule = f"react.{attribute}"
    return (rule if person == "own" and rule in found.bank.rules else "react.detail"), slots


@cache
def frame_slots(banks: Half, rule: str) -> frozenset[str]:
    """Slots that the lines of a dialogue rule name outright."""
    dialogue = library(banks).dialogue
    return frozenset(name for line in dialogue.rules[rule].alternatives for name in dialogue.slots_of(line))


def finish(text: str) -> str:
    """``text`` as a sentence, or several: capitals where they start, a full stop where there is no other mark."""
    text = text.rstrip(",;: ")
    if text[-1] not in ".?!" and not text.endswith(('."', '?"', '!"')):
        text += "."
    return _SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)
