"""Does an answer decline? Says it that it does not know, or that it will not tell, and offers no value all the same?

The vocabulary is ``lexicons/refusal.v1.txt``. An answer is cut into clauses; each declines, says nothing, reports what
else is known, or asserts. The answer abstains if a clause declines and none asserts a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal

from memarena.text.lexicon import phrases, table
from memarena.text.mentions import Kind
from memarena.text.reading import read_text
from memarena.text.words import clauses, content_words, stem, tidy, words

Manner = Literal["dont_know", "refuse", "none"]
_Role = Literal["dont_know", "refuse", "decline", "deny", "lack", "withhold", "empty", "report", "assert"]

_FILE = "refusal.v1.txt"
_KNOWING = "knowing_words.v1.txt"
_DECLINING: tuple[_Role, ...] = ("dont_know", "refuse", "decline")
_QUOTED = re.compile(r'"[^"\n]*"|(?<!\w)\'[^\'\n]{2,}\'(?!\w)')
_WRAPPING = re.compile(r"^\s*\{?\s*\"?(?:answer|response)\"?\s*:\s*(?=\S)|\*\*", re.IGNORECASE)
_TOPIC = re.compile(
    r"\b(?:the|any|a|his|her|their) (?:name|day|date|time|hour|price|cost|sum|amount|number|place|spot|location|reason|"
    r"cause|identity|colour|color|title|age|topic|address)s? (?:of|for|behind) (?:(?:the|a|an|his|her|their|my|your) )?"
    r"\w+(?: (?!(?:is|was|are|were|did|does|do|has|have|not|never|nowhere|with|while|to|from|as|or|and|on|in|at|came|"
    r"comes|remains|would|could|can)\b)\w+){0,2}"
)
_OF_ANOTHER = re.compile(
    r"(?:(?:and|but|so|because|since|as) )*"
    r"(?:he|she|they|how|to|that (?:you|he|she|they|i|we|the|people)|not \w+ing|not to)\b"
)
"""How a clause begins that tells of another's knowing or telling, or names an act or a content of it."""
_OPENS_QUESTION = re.compile(r"^\W*(?:\w+\W+){0,6}?(?:what|when|where|who|whom|whose|which|why|how)\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|nobody|neither|no (?=\w))")
_ASKED: tuple[tuple[str, frozenset[Kind]], ...] = (
    (r"\bwhat time\b|\bat what hour\b", frozenset({"time"})),
    (r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|week|weekday)\b", frozenset({"date", "weekday", "time"})),
    (r"\bhow long\b|\bduration\b", frozenset({"duration"})),
    (
        r"\bhow (?:much|many|old|far|tall|big|often)\b"
        r"|\b(?:costs?|prices?|number|amount|salary|pin|codes?)\b",
        frozenset({"amount", "duration"}),
    ),
)
"""What kind of value a question asks for, by its words; the first that matches decides."""
_HOLLOW_WORDS = """
likely guess believe assume suppose probably possibly presumably seems sounds sorry information context conversation
sure answer question think wild best suspect imagine know
"""


@dataclass(frozen=True)
class Stance:
    """How an answer stands to its question."""

    manner: Manner
    """``refuse`` has it and withholds it, ``dont_know`` claims not to have it (also where it leaves open which)."""
    asserts: str
    """The clause that offers a value, empty if none does."""
    declines: str
    """The clause that declines, empty if none does."""
    declines_first: bool = False
    """Whether the declining clause stands before the asserting one."""

    @property
    def abstains(self) -> bool:
        """Declines and asserts no value: what the abstain half of D5 wants."""
        return self.manner != "none" and not self.asserts


def read_stance(answer: str, question: str = "", names: Iterable[str] = ()) -> Stance:
    """Read an answer's stance.

    The question tells which words and values are no news in the answer; ``names`` are those by which the answer may
    address its asker.
    """
    asked = _asked(question, tuple(names))
    roles = [(spoken.clause, _role(spoken, asked)) for spoken in _clauses(answer)]
    declining = [(i, text) for i, (text, role) in enumerate(roles) if role in (*_DECLINING, "deny")]
    asserting = [(i, text) for i, (text, role) in enumerate(roles) if role == "assert"]
    asserts = asserting[0][1] if asserting else ""
    if not declining and not any(role in ("assert", "report") for _, role in roles):
        # Words of knowing and telling alone: weaker than a phrase, they decline only where nothing is offered.
        declining = [(i, text) for i, (text, role) in enumerate(roles) if role in ("lack", "withhold")]
    if not declining:
        return Stance("none", asserts, "")
    kinds = {role for _, role in roles}
    manner: Manner = "refuse" if kinds & {"refuse", "withhold"} and "dont_know" not in kinds else "dont_know"
    first = bool(asserting) and declining[0][0] < asserting[0][0]
    return Stance(manner, asserts, declining[0][1], first)


class _Asked:
    """What a question already says and what it asks for."""

    def __init__(self, question: str, names: Iterable[str]) -> None:
        self.names = frozenset(word for name in names for word in words(name))
        self.words = frozenset(content_words(question))
        self.opens = bool(_OPENS_QUESTION.search(question)) if question else False
        kinds = (kinds for pattern, kinds in _ASKED if re.search(pattern, question.lower()))
        self.kinds: frozenset[Kind] = next(kinds, frozenset())


@lru_cache(maxsize=4096)
def _asked(question: str, names: tuple[str, ...]) -> _Asked:
    # Many answers are read against one question.
    return _Asked(question, names)


class _Spoken:
    """A clause with all that holds of it whatever was asked."""

    def __init__(self, clause: str) -> None:
        self.clause = clause
        self.text = " ".join(words(clause)) + " "
        self.content = frozenset(content_words(clause))
        self._forms = (_without_lead(self.text), self.text)

    @cached_property
    def declining(self) -> _Role | None:
        """The way in which it declines."""
        return next((role for role in _DECLINING if self._says(role)), None)

    @cached_property
    def fills(self) -> bool:
        """Whether it says nothing at all."""
        return self._says("filler") or not self._forms[0].strip()

    @cached_property
    def reports(self) -> bool:
        """Whether it tells, without guessing, what else is known."""
        return not _guesses(self.text) and self._says("report")

    @cached_property
    def of_knowing(self) -> _Role | None:
        """What it does if it speaks of knowing and telling alone; None if not, or with a guess or a typed value."""
        said = {stem(word) for word in self.text.split()}
        known = said & _knowing_stems("about") and not _OF_ANOTHER.match(self.text)
        if not known or _guesses(self.text) or self.kinds - {"proper"}:
            return None
        if said & _knowing_stems("withholding"):
            return "withhold"
        return "lack" if said & _knowing_stems("lacking") else "empty"

    @cached_property
    def besides_topic(self) -> frozenset[str]:
        """Its content apart from what it calls the thing asked for (``the name of the dog sitter``)."""
        return frozenset(content_words(_TOPIC.sub(" ", self.text)))

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of the values that it mentions."""
        return frozenset(mention.kind for mention in read_text(self.clause).mentions)

    def _says(self, section: str) -> bool:
        pattern = phrases(_FILE, section)
        return any(pattern.match(form) for form in self._forms)


@lru_cache(maxsize=4096)
def _clauses(answer: str) -> tuple[_Spoken, ...]:
    # Answers come round again: those of a baseline for every question, short ones for every cell.
    return tuple(_spoken(clause.text) for clause in clauses(_unquoted(tidy(answer))))


@lru_cache(maxsize=4096)
def _spoken(clause: str) -> _Spoken:
    # Answers to different questions share their clauses of declining and their filler.
    return _Spoken(clause)


def _role(spoken: _Spoken, asked: _Asked) -> _Role:
    """What a clause does. Declining is looked for first, since it may hold anything as its object."""
    if spoken.declining is not None:
        return spoken.declining
    if spoken.of_knowing is not None and spoken.besides_topic <= asked.words | _empty_stems():
        return spoken.of_knowing
    if spoken.fills or set(spoken.text.split()) <= asked.names:
        return "empty"
    if not spoken.content - asked.words - _hollow_stems():
        # Content words that the question does not have are news; words of guessing are none.
        denies = asked.opens and _NEGATION.search(spoken.text) and spoken.content & asked.words
        return "deny" if denies else "empty"
    if spoken.reports and not spoken.kinds & asked.kinds:
        return "report"
    return "assert"


def _without_lead(spoken: str) -> str:
    """The clause behind the phrases that merely lead up to it."""
    lead = phrases(_FILE, "lead")
    while (match := lead.match(spoken)) and match.end():
        spoken = spoken[match.end() :]
    return spoken


def _guesses(spoken: str) -> bool:
    pattern = phrases(_FILE, "guess")
    return any(pattern.match(spoken, match.start()) for match in re.finditer(r"(?<!\S)(?=\S)", spoken))


@cache
def _hollow_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in _HOLLOW_WORDS.split())


@cache
def _empty_stems() -> frozenset[str]:
    return _hollow_stems() | {stem(word) for section in table(_KNOWING).values() for word in section}


@cache
def _knowing_stems(section: Literal["about", "neutral", "lacking", "withholding"]) -> frozenset[str]:
    """Stems of a section of the words of knowing."""
    return frozenset(stem(word) for word in table(_KNOWING)[section])


def _unquoted(text: str) -> str:
    """Quoted speech is somebody else's: blanked, unless the whole answer is one quotation."""
    stripped = _WRAPPING.sub("", text).strip().strip("{}").strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'" and stripped.count(stripped[0]) == 2:
        return stripped[1:-1]
    return _QUOTED.sub(" quotation ", stripped)
