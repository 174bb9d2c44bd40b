"""What sort of answer a question wants, read from its words, for the extractive reader."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from importlib.resources import files


class Want(Enum):
    """The sorts of answers that the reader knows; SENTENCE is any other."""

    SENTENCE = "sentence"
    DATE = "date"
    """The day of what the sentence tells."""
    TALK_DATE = "talk date"
    """The day on which something was said."""
    TALK_PLACE = "talk place"
    TALK_MEANS = "talk means"
    PLACE = "place"
    TELLER = "teller"
    INTERVAL = "interval"
    ORDER = "order"
    VERSIONS = "versions"
    REFERENT = "referent"
    """What a later word refers to: it was named before."""
    LATEST = "latest"
    EARLIEST = "earliest"
    PRESENT = "present"
    """Who was there when something was said."""
    PEOPLE = "people"
    """Who belongs to something."""


OF_TALK = frozenset({Want.TALK_DATE, Want.TALK_PLACE, Want.TALK_MEANS, Want.TELLER, Want.PRESENT})
"""What is asked is not the thing told but when, where, how, by whom or before whom it was told."""

QUESTION_FILE = "lexicons/questions.v1.txt"
"""A rule per line: the name of a want, a blank, a pattern."""


@cache
def _rules() -> tuple[tuple[Want, re.Pattern[str]], ...]:
    lines = files(__package__).joinpath(QUESTION_FILE).read_text(encoding="utf-8").splitlines()
    rules = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    telling = next(pattern for name, pattern in rules if name == "telling")
    return tuple(
        (Want[name.upper()], re.compile(pattern.replace("{telling}", telling), re.IGNORECASE | re.DOTALL))
        for name, pattern in rules
        if name != "telling"
    )


_QUOTED = re.compile(r"[\"“]([^\"”]{8,})[\"”]")
_LIST = re.compile(r"[^:]*:\s*(?P<items>.+?)[?.\s]*$", re.DOTALL)
_BETWEEN = re.compile(r"(?:\bbetween\b|\bdates?\b(?: on which)?:?)(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_JOINTS = re.compile(r"\s+(?:and|until|till|before|after|to|since)\s+|,\s+", re.IGNORECASE)


def wanted(question: str) -> Want:
    """The sort of answer that a question asks for; the first rule that fits decides."""
    plain = unquoted(question)
    return next((want for want, pattern in _rules() if pattern.search(plain)), Want.SENTENCE)


def told_of(question: str) -> tuple[str, str]:
    """A question about a talk, cut after the word for telling: who tells whom, and what was told of."""
    telling = next(iter(re.finditer(_telling(), question)), None)
    return (question[: telling.end()], question[telling.end() :]) if telling else (question, question)


@cache
def _telling() -> re.Pattern[str]:
    lines = files(__package__).joinpath(QUESTION_FILE).read_text(encoding="utf-8").splitlines()
    pattern = next(line.split(" ", 1)[1] for line in lines if line.startswith("telling "))
    after = r"(?:to me|me|to us|us|of|about|as to|that|openly|one \w+|namely)"
    return re.compile(rf"\b{pattern}(?:\W+{after}\b)*", re.IGNORECASE)


def unquoted(question: str) -> str:
    """The question without what it quotes."""
    return _QUOTED.sub(" ", question)


def quotes(question: str) -> tuple[str, ...]:
    """What a question quotes."""
    return tuple(_QUOTED.findall(question))


def listed(question: str) -> tuple[str, ...]:
    """The members of the list that a question gives after a colon; fewer than three are none."""
    found = _LIST.match(question)
    parts = re.split(r"\s*;\s*|\n+", found["items"]) if found else []
    if found and len(parts) < 3:
        parts = re.split(r"\s*,\s*(?:and\s+)?", found["items"])
    return tuple(part.strip() for part in parts if part.strip()) if len(parts) >= 3 else ()


def halves(question: str) -> tuple[tuple[str, str], ...]:
    """Ways to cut a question about two events in two."""
    rest = found["rest"] if (found := _BETWEEN.search(question)) else question
    cuts = [(rest[: joint.start()], rest[joint.end() :]) for joint in _JOINTS.finditer(rest)]
    return tuple((left, right) for left, right in cuts if len(left.split()) > 1 and len(right.split()) > 1)
