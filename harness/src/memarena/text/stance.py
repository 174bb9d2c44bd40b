"""Does an answer decline? Says it that it does not know, or that it will not tell, and offers no value all the same?

The vocabulary is ``lexicons/refusal.v1.txt``. An answer is cut into clauses; each declines, says nothing, reports what
else is known, or asserts. The answer abstains if a clause declines and none asserts a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from memarena.text.lexicon import phrases
from memarena.text.mentions import Kind
from memarena.text.reading import read_text
from memarena.text.words import clauses, content_words, stem, tidy, words

Manner = Literal["dont_know", "refuse", "none"]
_Role = Literal["dont_know", "refuse", "decline", "deny", "empty", "report", "assert"]

_FILE = "refusal.v1.txt"
_DECLINING: tuple[_Role, ...] = ("dont_know", "refuse", "decline")
_QUOTED = re.compile(r'"[^"\n]*"|(?<!\w)\'[^\'\n]{2,}\'(?!\w)')
_WRAPPING = re.compile(r"^\s*\{?\s*\"?(?:answer|response)\"?\s*:\s*(?=\S)|\*\*", re.IGNORECASE)
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
    roles = [(clause.text, _role(clause.text, asked)) for clause in clauses(_unquoted(tidy(answer)))]
    declining = [(i, text) for i, (text, role) in enumerate(roles) if role in (*_DECLINING, "deny")]
    asserting = [(i, text) for i, (text, role) in enumerate(roles) if role == "assert"]
    asserts = asserting[0][1] if asserting else ""
    if not declining:
        return Stance("none", asserts, "")
    kinds = {role for _, role in roles}
    manner: Manner = "refuse" if "refuse" in kinds and "dont_know" not in kinds else "dont_know"
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


def _role(clause: str, asked: _Asked) -> _Role:
    """What a clause does. Declining is looked for first, since it may hold anything as its object."""
    spoken = " ".join(words(clause)) + " "
    forms = (_without_lead(spoken), spoken)
    for role in _DECLINING:
        if _says(role, forms):
            return role
    news = _news(clause, asked)
    if _says("filler", forms) or not forms[0].strip() or set(spoken.split()) <= asked.names:
        return "empty"
    if not news:
        denies = asked.opens and _NEGATION.search(spoken) and set(content_words(clause)) & asked.words
        return "deny" if denies else "empty"
    if not _guesses(spoken) and _says("report", forms) and not _names_asked_value(clause, asked):
        return "report"
    return "assert"


def _says(section: str, forms: tuple[str, ...]) -> bool:
    return any(phrases(_FILE, section).match(form) for form in forms)


def _without_lead(spoken: str) -> str:
    """The clause behind the phrases that merely lead up to it."""
    lead = phrases(_FILE, "lead")
    while (match := lead.match(spoken)) and match.end():
        spoken = spoken[match.end() :]
    return spoken


def _guesses(spoken: str) -> bool:
    pattern = phrases(_FILE, "guess")
    return any(pattern.match(spoken, match.start()) for match in re.finditer(r"(?<!\S)(?=\S)", spoken))


def _news(clause: str, asked: _Asked) -> set[str]:
    """Content words that the question does not have; words of guessing are none."""
    return set(content_words(clause)) - asked.words - _hollow_stems()


@cache
def _hollow_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in _HOLLOW_WORDS.split())


def _names_asked_value(clause: str, asked: _Asked) -> bool:
    return any(mention.kind in asked.kinds for mention in read_text(clause).mentions)


def _unquoted(text: str) -> str:
    """Quoted speech is somebody else's: blanked, unless the whole answer is one quotation."""
    stripped = _WRAPPING.sub("", text).strip().strip("{}").strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'" and stripped.count(stripped[0]) == 2:
        return stripped[1:-1]
    return _QUOTED.sub(" quotation ", stripped)
