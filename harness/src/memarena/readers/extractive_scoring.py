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
from functools import cache, lru_cache
from importlib.resources import files

from memarena_answering import ContextItem

STOPWORD_FILE = "lexicons/stopwords.v1.txt"
IRREGULAR_FILE = "lexicons/irregular.v1.txt"
"""One word per line, its other forms after it."""

_SATURATION = 1.2
_LENGTH_SHARE = 0.5
_QUESTION_DISCOUNT = 0.5
"""Somebody else's question seldom holds an answer."""
_NEW_WORDS = (0.2, 0.7, 1.0)
"""By the number of its words that the question does not have: one that has none only takes up what was asked."""

WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(
    r"(?<=[.!?…。！？])(?<!\b[DM]r\.)(?<!\b[DM]s\.)(?<!\bMrs\.)(?<!\bSt\.)\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])"
)
_SPEAKER = re.compile(r"^\s*(?P<speaker>[^\s:][^:\n]{0,40}):\s+(?=\S)")
_SETTING = re.compile(r"\A\s*\[(?P<parts>[^\[\]\n]+)\](?=\s)\s*")


def _data(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


@cache
def _stopwords() -> frozenset[str]:
    return frozenset(_data(STOPWORD_FILE).decode().split())


@cache
def _irregular() -> dict[str, str]:
    lines = [line.split() for line in _data(IRREGULAR_FILE).decode().splitlines()]
    return {form: base for base, *forms in lines for form in forms}


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """A word without its commonest English endings, empty for a stop word. Made for matching, not for reading."""
    word = word.lower()
    if word in _stopwords():
        return ""
    word = _irregular().get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif re.search(r"(?:s|x|z|ch|sh)es$", word):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and re.search(r"[aeiouy]", base):
            word = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word.removesuffix("e") if len(word) > 3 else word


def content_words(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(filter(None, map(stem, WORD.findall(text))))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, who said it, the stems of both, and the place of its item in the context."""

    text: str
    words: frozenset[str]
    speaker: str = ""
    item: int = 0

    @property
    def is_question(self) -> bool:
        """Whether it ends like one."""
        return _asks(self.text)

    @property
    def said(self) -> str:
        """The sentence without its speaker."""
        return self.text.removeprefix(f"{self.speaker}: ") if self.speaker else self.text


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

    def scores(self, wanted: frozenset[str]) -> list[float]:
        """How much each sentence shares with the words."""
        scores = []
        for sentence in self.sentences:
            shared = wanted & sentence.words
            if not shared:
                scores.append(0.0)
                continue
            length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * len(sentence.words) / self.mean_length
            weight = sum(sorted(self.weights[word] for word in shared)) * (1 + _SATURATION)
            asks = _QUESTION_DISCOUNT if sentence.is_question else 1.0
            new = len(sentence.words - wanted - content_words(sentence.speaker))
            tells = _NEW_WORDS[min(new, len(_NEW_WORDS) - 1)]
            scores.append(tells * asks * weight / (1 + _SATURATION * length))
        return scores


def index_of(items: Sequence[ContextItem]) -> Index:
    found = tuple(sentences(items))
    frequency = Counter(word for sentence in found for word in sentence.words)
    weights = {word: math.log(1 + (len(found) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}
    total = sum(len(sentence.words) for sentence in found)
    return Index(found, weights, max(total / len(found), 1.0) if found else 1.0)
