"""Sentences of a context and how much each shares with a question, for the extractive reader.

Sentences are scored by the words they share with the question, rare words counting more (BM25's weighting, Robertson
and Zaragoza 2009, with every word counted once).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memarena_answering import ContextItem

from memarena.readers.extractive_related import related
from memarena.readers.extractive_stems import WORD, content_words

_SATURATION = 1.2
_LENGTH_SHARE = 0.5
_QUESTION_DISCOUNT = 0.5
"""Somebody else's question seldom holds an answer."""
RELATED_SHARE = 0.4
"""What a related word counts, of the word itself."""
_NEW_WORDS = (0.2, 0.7, 1.0)
"""By the number of its words that the question does not have: one that has none only takes up what was asked."""

_SENTENCE_END = re.compile(
    r"(?<=[.!?…。！？])(?<!\b[DM]r\.)(?<!\b[DM]s\.)(?<!\bMrs\.)(?<!\bSt\.)\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])"
)
_SPEAKER = re.compile(r"^\s*(?P<speaker>[^\s:][^:\n]{0,40}):\s+(?=\S)")
_CAPITAL = re.compile(r"\b[A-Z][^\W\d_]*")
_SETTING = re.compile(r"\A\s*\[(?P<parts>[^\[\]\n]+)\](?=\s)\s*")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, who said it, the stems of both, and the place of its item in the context."""

    text: str
    words: frozenset[str]
    speaker: str = ""
    item: int = 0

    @property
    def names(self) -> frozenset[str]:
        """First names and other words with a capital, in lower case, without a possessive ending."""
        return frozenset(word.lower() for word in _CAPITAL.findall(self.said))

    @property
    def is_question(self) -> bool:
        """Whether it ends like one."""
        return _asks(self.text)

    @property
    def said(self) -> str:
        """The sentence without its speaker."""
        return self.text.removeprefix(f"{self.speaker}: ") if self.speaker else self.text


def first_name(name: str) -> str:
    """First word of a name, in lower case; empty for an empty name."""
    words = WORD.findall(name)
    return words[0].lower() if words else ""


def setting_of(item: ContextItem) -> tuple[str, ...]:
    """What stands in brackets at the head of an item ("[face to face, at Luna Café]"), part by part."""
    found = _SETTING.match(item.text)
    return tuple(part.strip() for part in found["parts"].split(",")) if found else ()


def sentences(items: Sequence[ContextItem]) -> Iterator[Sentence]:
    """All sentences in order. The speaker of a line ("Name: …") belongs to each of its sentences; a setting to none."""
    for place, item in enumerate(items):
        for line in _SETTING.sub("", item.text).splitlines():
            said = _SPEAKER.match(line)
            speaker = said["speaker"] if said else ""
            by = content_words(speaker)
            for text in _statements(line[said.end() :] if said else line):
                shown = f"{speaker}: {text}" if speaker else text
                yield Sentence(shown, content_words(text) | by, speaker, place)


def _statements(line: str) -> Iterator[str]:
    """Sentences of a line. A question that its speaker goes on from belongs to what follows ("My trick? Nutmeg.")."""
    asked = ""
    for part in _SENTENCE_END.split(line):
        text = f"{asked} {part.strip()}".strip()
        asked = text if _asks(text) else ""
        if text and not asked:
            yield text
    if asked:
        yield asked


def _asks(text: str) -> bool:
    return text.rstrip("\"'”’)").endswith(("?", "？"))


@dataclass(frozen=True, slots=True)
class Index:
    """Sentences with what their words weigh."""

    sentences: tuple[Sentence, ...]
    weights: dict[str, float]
    mean_length: float

    def shared(self, wanted: frozenset[str]) -> list[tuple[float, bool]]:
        """How much of the words each sentence covers, by weight, between 0 and 1: related words count in part.

        Beside it whether that is more than one related word, which alone says little.
        """
        near = {word: related(word, self.weights) for word in wanted}
        unseen = math.log(1 + (len(self.sentences) + 0.5) / 0.5)
        weight = {word: self.weights.get(word, unseen) for word in wanted}
        total = sum(sorted(weight.values())) or 1.0
        order = sorted(wanted)
        covered = []
        for sentence in self.sentences:
            words, parts, same = sentence.words, 0.0, False
            count = 0
            for word in order:
                if word in words:
                    parts, count, same = parts + weight[word], count + 1, True
                elif akin := near[word] & words:
                    best = max(self.weights[each] for each in akin)
                    parts, count = parts + RELATED_SHARE * min(weight[word], best), count + 1
            covered.append((parts / total, same or count > 1))
        return covered

    def brevity(self, sentence: Sentence) -> float:
        """What a sentence's length leaves of its score, as BM25 weighs it: 1 at the mean length."""
        length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * len(sentence.words) / self.mean_length
        return (1 + _SATURATION) / (1 + _SATURATION * length)

    def news(self, sentence: Sentence, wanted: frozenset[str]) -> float:
        """What is left of the score of a sentence that adds no word to what was asked."""
        new = len(sentence.words - wanted - content_words(sentence.speaker))
        return _NEW_WORDS[min(new, len(_NEW_WORDS) - 1)]

    def scores(self, wanted: frozenset[str]) -> list[float]:
        """How well each sentence fits the words alone."""
        return [
            covered * self.brevity(each) * self.news(each, wanted) * (_QUESTION_DISCOUNT if each.is_question else 1.0)
            for (covered, _), each in zip(self.shared(wanted), self.sentences, strict=True)
        ]


def index_of(items: Sequence[ContextItem]) -> Index:
    found = tuple(sentences(items))
    frequency = Counter(word for sentence in found for word in sentence.words)
    weights = {word: math.log(1 + (len(found) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}
    total = sum(len(sentence.words) for sentence in found)
    return Index(found, weights, max(total / len(found), 1.0) if found else 1.0)
