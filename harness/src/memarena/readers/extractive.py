"""Answers a question with a sentence of the context, or a value in it, without a language model.

It is for tests and reference figures, needs no weights, and knows nothing of any data set. Sentences are ranked by the
content words that they share with the question, rare words counting more; words of neighbouring sentences of the same
item count in part. If the best sentence is neither by nor about a person whom the question names, or shares too little,
the answer is "I do not know". If the question asks for a date, a time, a number or a name, the answer is that value
from the sentence. Equal prompts always give the same answer.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from memarena_answering import ContextItem, PromptParts
from memarena_answering.assets import prompt_text
from memarena_dataset.values.mentions import DateMention, Mention, PartialDate
from memarena_dataset.values.reading import read_text

from memarena.readers.extractive_words import (
    WORD,
    Sentence,
    content_words,
    lexicon,
    sentences,
    setting_of,
    stem,
    synonyms,
)

MODEL = "extractive"
DEFAULT_WINDOW_TOKENS = 16_384

UNKNOWN = "I do not know."
UNKNOWN_REASON = "Nothing in the context is about it."
WITHHELD = "I may not share that."
WITHHELD_REASON = "Who told it asked to keep it from others."

LEAST_SHARE = 0.2
"""Share of the question's words, by weight, that the best sentence must cover for an answer."""
UNSEEN = 0.2
"""Weight of a word that is not in the context, relative to a word that occurs in it once."""
SYNONYM = 0.4
"""Weight of a synonym, relative to the word itself."""
NEIGHBOUR = 0.35
"""Factor of a word that is in the previous or next sentence of the same item."""
OF_SOMEBODY_ELSE, ASKS, WITHOUT_VALUE = 0.8, 0.35, 0.4
"""Factors of a sentence's share: if it is neither by nor about a person whom the question names; if it is or contains a
question; if it has no value of the kind that the question asks for."""
NEW_WORDS = (0.2, 0.7, 1.0)
"""Factors of a sentence's share by the number of its words that are not in the question: 0, 1, 2 or more."""
LEAST_NEW = 2
"""Least number of words not in the question that a part of a sentence needs to be an answer."""
SECOND_VERSION = 0.5
"""Least share, relative to the best sentence's, at which another sentence counts as a second version."""
SECRECY_SENTENCES = 2
"""Distance in sentences within which a speaker's words on who may hear apply to a sentence."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_CAPITAL = re.compile(r"\b[A-Z][^\W\d_]+")
_LETTER = r"[(\[]?[A-Z][)\].:]\s"
_OPTION = re.compile(
    rf"(?:(?<=\s)|\A)(?={_LETTER})[(\[]?(?P<letter>[A-Z])[)\].:]\s+(?P<text>.+?)\s*[;,]?(?=\s{_LETTER}|\n|\Z)"
)
"""A lettered option of a question: ``A) Lisbon; B) Porto``, ``(A) Lisbon``, ``[B] Porto``."""
_EMBEDDED_QUESTION = re.compile(
    r"\b(?:which|whose|whom|how (?:long|much|many|far|old|often)|(?:know|wonder|so|that's|there's) wh\w+)\b",
    re.IGNORECASE,
)
"""Words of a question within a sentence: "I wonder where she lives"."""
_CLAUSE = re.compile(r"\s*(?:[,;:–—]|\s-|\.\.\.|\b(?:and|but) (?=I\b))\s+")
"""What separates the clauses of a sentence."""
_NEAR_WEEK = re.compile(r"\b(?P<which>last|past|this|next) (?P<what>week(?:end)?)\b", re.IGNORECASE)
_WEEK = {"last": "before", "past": "before", "this": "of", "next": "after"}
"""For an answer such as "the week before 9 June 2023", from "last week" in a sentence of that day."""
_FIRST_PERSON = re.compile(r"\b(?:I|my|me|mine|we|our)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """An answer and the reason for it."""

    answer: str
    reason: str

    def as_json(self) -> str:
        """Return the reply in the form in which readers answer."""
        return json.dumps({"answer": self.answer, "reason": self.reason}, ensure_ascii=False)


def options(question: str) -> tuple[str, dict[str, str]]:
    """Return the question without its lettered options, and the options by letter; none unless they run A, B, …."""
    marks = list(_OPTION.finditer(question))
    letters = [match["letter"] for match in marks]
    start = next((i for i, letter in enumerate(letters) if letters[i : i + 2] == ["A", "B"]), None)
    if start is None:
        return question, {}
    run = [match for index, match in enumerate(marks[start:]) if match["letter"] == chr(ord("A") + index)]
    return question[: run[0].start()], {match["letter"]: match["text"].strip() for match in run}


def answer(parts: PromptParts) -> FoundAnswer:
    """Return the answer of the context to the question; of equal sentences the shortest decides, then the first."""
    context = Context(tuple(sentences(parts.items)), parts.items)
    question, choices = options(parts.question)
    ranked = context.ranked(question)
    if choices:
        return _option(ranked, choices)
    if not ranked or ranked[0].share < LEAST_SHARE or ranked[0].of_somebody_else:
        return FoundAnswer(UNKNOWN, UNKNOWN_REASON)
    best = [ranked[0]]
    if lexicon().fits("versions", question):
        best += [
            candidate
            for candidate in ranked
            if candidate.share >= SECOND_VERSION * best[0].share and _differs(candidate, best[0])
        ][:1]
    if not all(context.may_hear(candidate.index, parts.asked_by) for candidate in best):
        return FoundAnswer(WITHHELD, WITHHELD_REASON)
    if lexicon().fits("telling", question) and (around := context.around(best[0], question)):
        return FoundAnswer(around, f"The context says: {best[0].sentence.text[:160]}")
    texts = [
        context.value(candidate, question) or stretch(candidate.sentence.text, content_words(question))
        for candidate in best
    ]
    return FoundAnswer("; ".join(texts), f"The context says: {best[0].sentence.text[:160]}")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A sentence of the context, ranked by the share of the question's words that it covers.

    ``index`` is its position in the context.
    """

    share: float
    index: int
    sentence: Sentence
    values: tuple[Mention, ...]
    """Its values of the kind that the question asks for."""
    of_somebody_else: bool
    """Whether it is neither by nor about a person whom the question names."""


def kind_of(question: str) -> str:
    """Return the kind of value that a question asks for; empty if it asks for no value."""
    return next((name for name, pattern in lexicon().kinds if pattern.search(question)), "")


class Context:
    """The sentences of a prompt's context, and the weights of their words: the rarer, the higher."""

    def __init__(self, ordered: Sequence[Sentence], items: Sequence[ContextItem]) -> None:
        self.sentences = ordered
        self._items = items
        frequency = Counter(word for sentence in ordered for word in sentence.words)
        self._weights = {word: math.log(1 + len(ordered) / count) for word, count in frequency.items()}
        self._unseen = UNSEEN * math.log(1 + len(ordered))
        self._speakers = {sentence.speaker: frozenset(_names(sentence.speaker)) for sentence in ordered}

    def ranked(self, question: str) -> list[Ranked]:
        """Return the sentences that share words with a question, best first."""
        speakers = frozenset().union(*self._speakers.values())
        people = frozenset(_names(question)) & speakers
        if not people and _FIRST_PERSON.search(question):
            people = self._owner()
        sought = content_words(question) - frozenset(map(stem, people)) or content_words(question)
        weight = {word: self._weights.get(word, self._unseen) for word in sorted(sought)}
        total = sum(weight.values()) or 1.0
        telling = lexicon().fits("telling", question)
        kind = "" if telling else kind_of(question)
        shares = [self._covered(candidate.words, weight) for candidate in self.sentences]
        scored = []
        for index, sentence in enumerate(self.sentences):
            near = [shares[n] for n in self._neighbours(index)]
            if not shares[index] and not any(near):
                continue
            share = (
                sum(max(shares[index].get(w, 0.0), *(NEIGHBOUR * n.get(w, 0.0) for n in near), 0.0) for w in weight)
                / total
            )
            other_words = False
            if people and not people & (self._speakers[sentence.speaker] | frozenset(_names(sentence.text))):
                share *= OF_SOMEBODY_ELSE
                other_words = True
            if sentence.text.rstrip("\"'”’)").endswith(("?", "？")) or _EMBEDDED_QUESTION.search(sentence.text):
                share *= ASKS
            values = self._values(sentence, kind, question) if kind else ()
            if kind:
                share *= 1.0 if values else WITHOUT_VALUE
            elif not telling:
                new = len(sentence.words - sought - frozenset(map(stem, people)))
                share *= NEW_WORDS[min(new, 2)]
            scored.append(Ranked(share, index, sentence, values, other_words))
        return sorted(scored, key=lambda candidate: (-candidate.share, len(candidate.sentence.text), candidate.index))

    def _owner(self) -> frozenset[str]:
        """Return the names of the only person who speaks in all items: the memory's owner; empty if there is none."""
        by_item: dict[int, set[str]] = {}
        for sentence in self.sentences:
            by_item.setdefault(sentence.item, set()).add(sentence.speaker)
        everywhere = set.intersection(*by_item.values()) if by_item else set()
        return self._speakers[everywhere.pop()] if len(everywhere) == 1 else frozenset()

    def _covered(self, words: frozenset[str], weight: Mapping[str, float]) -> dict[str, float]:
        """Return the weights of the sought words that a sentence has; for a synonym a part of it (`SYNONYM`)."""
        weights = {word: weight[word] for word in weight if word in words}
        for word in weight:
            if word not in weights and (akin := synonyms().get(word, frozenset()) & words):
                weights[word] = SYNONYM * max(self._weights[synonym] for synonym in akin)
        return weights

    def _neighbours(self, index: int) -> Iterator[int]:
        """Yield the indices of a sentence's neighbours in its item."""
        for neighbour in (index - 1, index + 1):
            if 0 <= neighbour < len(self.sentences) and self.sentences[neighbour].item == self.sentences[index].item:
                yield neighbour

    def said_on(self, sentence: Sentence) -> date | None:
        """Return the day of a sentence's item; None if the prompt does not have it."""
        match = _DAY.search(self._items[sentence.item].time)
        try:
            return date.fromisoformat(match.group()) if match else None
        except ValueError:
            return None

    def _values(self, sentence: Sentence, kind: str, question: str) -> tuple[Mention, ...]:
        question_mentions = read_text(question).mentions
        mentions = read_text(sentence.text, self.said_on(sentence)).mentions
        return tuple(
            mention
            for mention in mentions
            if mention.kind == kind and not any(mention.same(asked_mention) for asked_mention in question_mentions)
        )

    def value(self, best: Ranked, question: str) -> str:
        """Return as text the value in a sentence that a question asks for; empty if there is none."""
        said_on = self.said_on(best.sentence)
        text = read_text(best.sentence.text, said_on)
        values = best.values
        if not values and kind_of(question) == "date":
            values = tuple(text.of_kind("time", "weekday"))  # "when" may be after either, too
            if not values and said_on:
                return _near(best.sentence.text, said_on)
        if not values:
            return ""
        if isinstance(values[0], DateMention):
            return date_text(min(values[0].readings, key=lambda reading: _distance(reading, said_on)))
        return text.text[values[0].start : values[0].end].rstrip(".")

    def around(self, statement: Ranked, question: str) -> str:
        """Return what the question asks about a sentence's conversation: who was present, who spoke, where, when, how.

        Empty if it asks for none of these, or the prompt does not show it.
        """
        words, said_on = lexicon(), self.said_on(statement.sentence)
        setting = setting_of(self._items[statement.sentence.item])
        if words.fits("present", question):
            there = dict.fromkeys(
                sentence.speaker for sentence in self.sentences if sentence.item == statement.sentence.item
            )
            apart = self._owner() | frozenset(_names(question)) | self._speakers[statement.sentence.speaker]
            return ", ".join(name for name in there if name and not apart & self._speakers[name])
        if words.fits("teller", question):
            return statement.sentence.speaker
        if words.fits("place", question):
            return next((part.removeprefix("at ") for part in setting if part.startswith("at ")), "")
        if kind_of(question) == "date":
            return date_text(PartialDate.of(said_on)) if said_on else ""
        return setting[0] if setting and words.fits("means", question) else ""

    def may_hear(self, index: int, asked_by: str) -> bool:
        """Whether the asker may hear a sentence: the owner always, others unless its speaker forbids it nearby."""
        if asked_by in ("", prompt_text().asker_owner):
            return True
        relationship = asked_by.partition(",")[2].removesuffix("of the owner")
        sentence = self.sentences[index]
        # The nearest sentence decides; of two at one distance, the later one.
        near = range(max(0, index - SECRECY_SENTENCES), min(len(self.sentences), index + SECRECY_SENTENCES + 1))
        for neighbour in (self.sentences[n] for n in sorted(near, key=lambda n: (abs(n - index), -n))):
            if (neighbour.item, neighbour.speaker) != (sentence.item, sentence.speaker):
                continue
            if lexicon().fits("public", neighbour.text):
                return True
            if lexicon().fits("circle", neighbour.text):
                return bool(content_words(relationship) & neighbour.words)
            if lexicon().fits("private", neighbour.text):
                return False
        return True


def stretch(text: str, wanted: frozenset[str]) -> str:
    """Return the clauses of a sentence that share words with the question, with neighbours if they add too little."""
    parts = _CLAUSE.split(text)
    hits = [index for index, part in enumerate(parts) if content_words(part) & wanted]
    if not hits:
        return text
    phrase = ", ".join(parts[hits[0] : hits[-1] + 1])
    more = len(content_words(phrase) - wanted) < LEAST_NEW
    return ", ".join(parts[max(0, hits[0] - 1) : hits[-1] + 2]) if more else phrase


def _differs(first: Ranked, second: Ranked) -> bool:
    """Whether two sentences state different things: no common value, or two words of the first not in the second."""
    if first.values and second.values:
        return not any(a.same(b) for a in first.values for b in second.values)
    return len(first.sentence.words - second.sentence.words) >= 2


def _names(text: str) -> Iterable[str]:
    return (word.lower() for word in _CAPITAL.findall(text))


def _distance(mentioned: PartialDate, said_on: date | None) -> tuple[int, str]:
    return (abs((mentioned.whole - said_on).days) if mentioned.whole and said_on else 0, str(mentioned))


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def date_text(day: PartialDate) -> str:
    """Return the known parts of a date as text: "the week before 9 June 2023", "June 2023", "2022"."""
    month = _MONTHS[day.month - 1] if day.month else ""
    text = " ".join(str(part) for part in (day.day, month, day.year) if part)
    return f"the {day.around} {text}" if day.around else text


def _near(text: str, said_on: date) -> str:
    """Return the week that a sentence names relative to its day ("last week"), else that day, as text."""
    day = date_text(PartialDate.of(said_on))
    week = _NEAR_WEEK.search(text)
    return f"the {week['what'].lower()} {_WEEK[week['which'].lower()]} {day}" if week else day


def _option(ranked: Sequence[Ranked], shown: Mapping[str, str]) -> FoundAnswer:
    """Return the option whose words occur in a sentence, weighted by that sentence's share of the question."""
    best, letter, reason = 0.0, "", ""
    for option_letter, text in shown.items():
        words = content_words(text) or frozenset(word.lower() for word in WORD.findall(text))
        for candidate in ranked:
            covered = len(words & candidate.sentence.words) / len(words) if words else 0.0
            if covered * candidate.share > best:
                best, letter, reason = covered * candidate.share, option_letter, candidate.sentence.text
    return FoundAnswer(letter, f"The context says: {reason[:160]}") if letter else FoundAnswer(UNKNOWN, UNKNOWN_REASON)
