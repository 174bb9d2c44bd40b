"""What a question is about: its own words, the people it names, and the kind of answer it asks for."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from memarena_answering.assets import prompt_text

from memarena.readers.extractive_dates import MONTHS, WEEKDAYS
from memarena.readers.extractive_kinds import told_of, unquoted
from memarena.readers.extractive_scoring import Sentence, first_name
from memarena.readers.extractive_stems import content_words, stem

KIND_FILE = "lexicons/kinds.v1.txt"
REQUEST_FILE = "lexicons/requests.v1.txt"

_NUMBER = (
    r"(?:\d[\d.,]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)\b)"
)
_NAME = r"(?<=[\w,;:'’\"] )(?!I\b)[A-Z][\w'’]+"
"""A capital within a sentence."""
_PERSON = re.compile(r"\b[A-Z][\w'’-]+(?: (?:van|von|de|da|el|al|la))?(?: [A-Z][\w'’-]+)+\b")
_FIRST = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b", re.IGNORECASE)
_SECOND = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_I = re.compile(r"\bI\b|\bmyself\b")
_TO_ME = re.compile(r"\b(?:told?|tell|to|inform(?:ed)?|made|reach(?:ed)?|with|two of) (?:me|us)\b")
_CALLED = re.compile(r"(?:^|[,.!?;:] |\b(?:[Hh]i|[Hh]ello|[Hh]ey|[Dd]ear|[Aa]nd) )([A-Z][\w’'-]+)(?=[,.!?;:])")
_CALLED_WITHIN = re.compile(r"(?:, |\b(?:[Hh]i|[Hh]ello|[Hh]ey|[Dd]ear) )([A-Z][a-z]+)(?=[,!?.:])")
_CALENDAR = frozenset((*MONTHS, *WEEKDAYS))
_ONLY_ASKED = frozenset({"clock", "weekday", "month", "street", "colour", "count", "place"})
"""Kinds whose words ask for the answer and do not come up in it."""
_NOT_ASKED_FOR, _NOT_THE_TELLER = 0.4, 0.25
_ASSISTANT = re.compile(r"^(?P<owner>.+?)['’]s? (?:assistant|AI|bot)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of answers: what asks for it and what a sentence that tells it holds."""

    name: str
    asked: re.Pattern[str]
    told: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart. ``people`` are first names in lower case, the asker's too where it asks of "me"."""

    text: str
    words: frozenset[str]
    people: frozenset[str]
    asker: str
    """First name of who asks, in lower case; empty where the prompt does not tell."""
    mine: bool
    """It asks about "me" or "my"."""
    kind: Kind | None
    teller: frozenset[str] = frozenset()
    """Of a question about a talk: who told, first names in lower case."""


def _lines(name: str) -> list[str]:
    lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@cache
def kinds() -> tuple[Kind, ...]:
    """All kinds in the order in which they are tried."""
    found: dict[str, dict[str, str]] = {}
    for line in _lines(KIND_FILE):
        name, role, pattern = line.split(" ", 2)
        found.setdefault(name, {})[role] = pattern.replace("{number}", _NUMBER).replace("{name}", _NAME)
    return tuple(
        Kind(name, re.compile(rules["ask"], re.IGNORECASE), re.compile(rules["told"])) for name, rules in found.items()
    )


@cache
def _requests() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in _lines(REQUEST_FILE))


def without_request(question: str) -> str:
    """The question without "Can you tell me" and the like, unless nothing is left."""
    text = question
    for pattern in _requests():
        text = pattern.sub(" ", text)
    return text if content_words(text) else question


def owner_of(sentences: Sequence[Sentence], asked_by: str) -> str:
    """First name of "I": who asks, if the prompt names them, else whose assistant talks, else who talks everywhere."""
    if asked_by not in ("", prompt_text().asker_owner, prompt_text().asker_anonymous):
        return first_name(asked_by.partition(",")[0])
    by_item: dict[int, set[str]] = {}
    for sentence in sentences:
        if sentence.speaker:
            if found := _ASSISTANT.match(sentence.speaker):
                return first_name(found["owner"])
            by_item.setdefault(sentence.item, set()).add(first_name(sentence.speaker))
    everywhere = set.intersection(*by_item.values()) if by_item else set()
    return everywhere.pop() if len(everywhere) == 1 else ""


def asked_of(question: str, asker: str, speakers: frozenset[str], *, of_talk: bool = False) -> Asked:
    """Take a question apart. ``speakers`` are first names in lower case; ``of_talk``: it asks who told, or when."""
    head, text = told_of(question) if of_talk else ("", question)
    text = without_request(text)
    plain = unquoted(text)
    people = _people(plain, speakers)
    mine = bool(_FIRST.search(_TO_ME.sub(" ", plain)))
    if mine and asker:
        people |= {asker}
    teller = _people(head, speakers)
    if of_talk and not teller and asker and _I.search(head):
        teller = frozenset({asker})
    kind = next((each for each in kinds() if each.asked.search(plain)), None)
    shown = _PERSON.sub(" ", plain)
    words = content_words(shown) - people
    if kind is not None and kind.name in _ONLY_ASKED:
        words = content_words(kind.asked.sub(" ", shown)) - people or words
    return Asked(text, words or content_words(text), people, asker, mine, kind, teller)


def _people(text: str, speakers: frozenset[str]) -> frozenset[str]:
    """First names in lower case of those whom a text names."""
    named = set()
    for match in _PERSON.finditer(text):
        words = match.group().split()
        # "Is Ana Reed …": the first word of a question has a capital without being a name.
        opens = not text[: match.start()].rstrip() or text[: match.start()].rstrip()[-1] in ".?!:"
        named.add(first_name(" ".join(words[1:] if opens and not stem(words[0]) else words)))
    return frozenset(named | {word.lower() for word in re.findall(r"\b[A-Z][\w-]+", text)} & speakers)


def told_by(sentence: Sentence, asked: Asked, who: bool) -> float:
    """How well the speaker fits a question about a talk; ``who``: it asks who told, neither "I" nor who is told of."""
    speaker = first_name(sentence.speaker)
    if who:
        return _NOT_THE_TELLER if speaker in asked.people or speaker == asked.asker else 1.0
    return 1.0 if not asked.teller or speaker in asked.teller else _NOT_ASKED_FOR


def called(sentence: Sentence, known: Container[str]) -> list[str]:
    """Names by which a sentence calls somebody ("Well, Ana, …"); at its start only one ``known``, in lower case."""
    found = [name for name in _CALLED.findall(sentence.said) if name.lower() in known]
    return [*found, *(name for name in _CALLED_WITHIN.findall(sentence.said) if name.lower() not in _CALENDAR)]


def about(sentence: Sentence, asked: Asked) -> float:
    """How well a sentence fits the people of a question: 1 where it cannot be told."""
    if not asked.people and not asked.mine:
        return 1.0
    speaker = first_name(sentence.speaker)
    said = sentence.said
    mentioned = bool(asked.people & sentence.names - {speaker})
    if speaker in asked.people or (asked.mine and not asked.asker):
        return _OWN if _FIRST.search(said) else _OWN_WITHOUT
    if mentioned:
        return _MENTIONED
    return _OTHERS


_OWN, _OWN_WITHOUT, _MENTIONED, _OTHERS = 1.2, 0.8, 1.1, 0.4


def addresses(sentence: Sentence) -> bool:
    """Whether it speaks to somebody and not of its speaker ("In which street you park")."""
    return bool(_SECOND.search(sentence.said)) and not _FIRST.search(sentence.said)


def values(sentence: Sentence, kind: Kind | None, speakers: frozenset[str]) -> frozenset[str]:
    """What a sentence holds of the kind, in lower case; names of those who talk are no answer."""
    if kind is None:
        return frozenset()
    found = {re.split(r"['’]s?\b", match.group().lower())[0] for match in kind.told.finditer(sentence.said)}
    return frozenset(found - speakers - _CALENDAR if kind.name in ("name", "place") else found)
