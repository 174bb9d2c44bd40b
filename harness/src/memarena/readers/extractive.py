"""The extractive reader's whole wit: the sentence of the context that shares most with the question. No model.

Sentences are scored by the words they share with the question, rare words counting more (BM25's weighting, Robertson
and Zaragoza 2009, with every word counted once). The same prompt always gives the same answer.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from memarena_answering import ContextItem, Message, PromptParts, split_prompt

MODEL = "extractive"
DEFAULT_WINDOW_TOKENS = 16_384

STOPWORD_FILE = "lexicons/stopwords.v1.txt"
IRREGULAR_FILE = "lexicons/irregular.v1.txt"
"""One word per line, its other forms after it."""

UNKNOWN = "I do not know."
UNKNOWN_REASON = "Nothing in the context is about it."

_SATURATION = 1.2
_LENGTH_SHARE = 0.5
_QUESTION_DISCOUNT = 0.5
"""Somebody else's question seldom holds an answer."""
_REASON_CHARS = 160

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])")
_SPEAKER = re.compile(r"^\s*(?P<speaker>[^\s:][^:\n]{0,40}):\s+(?=\S)")
_LETTER = r"[(\[]?[A-Z][)\].:]\s"
_OPTION = re.compile(
    rf"(?:(?<=\s)|\A)(?={_LETTER})[(\[]?(?P<letter>[A-Z])[)\].:]\s+(?P<text>.+?)\s*[;,]?(?=\s{_LETTER}|\n|\Z)"
)


def _data(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


@cache
def _stopwords() -> frozenset[str]:
    return frozenset(_data(STOPWORD_FILE).decode().split())


@cache
def _irregular() -> dict[str, str]:
    lines = [line.split() for line in _data(IRREGULAR_FILE).decode().splitlines()]
    return {form: base for base, *forms in lines for form in forms}


def data_files() -> dict[str, str]:
    """SHA-256 (hex) of every file that can decide an answer of the extractive reader."""
    names = (STOPWORD_FILE, IRREGULAR_FILE)
    return {f"memarena/readers/{name}": hashlib.sha256(_data(name)).hexdigest() for name in names}


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
    return frozenset(filter(None, map(stem, _WORD.findall(text))))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, who said it, and the stems of both."""

    text: str
    words: frozenset[str]


def sentences(items: Sequence[ContextItem]) -> Iterator[Sentence]:
    """All sentences in order. The speaker of a line ("Name: …") belongs to each of its sentences."""
    for item in items:
        for line in item.text.splitlines():
            said = _SPEAKER.match(line)
            speaker = said["speaker"] if said else ""
            by = content_words(speaker)
            for part in _SENTENCE_END.split(line[said.end() :] if said else line):
                if text := part.strip():
                    yield Sentence(f"{speaker}: {text}" if speaker else text, content_words(text) | by)


@dataclass(frozen=True, slots=True)
class _Index:
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
            asks = _QUESTION_DISCOUNT if sentence.text.rstrip("\"'”’)").endswith(("?", "？")) else 1.0
            scores.append(asks * weight / (1 + _SATURATION * length))
        return scores


def _index(items: Sequence[ContextItem]) -> _Index:
    found = tuple(sentences(items))
    frequency = Counter(word for sentence in found for word in sentence.words)
    weights = {word: math.log(1 + (len(found) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}
    total = sum(len(sentence.words) for sentence in found)
    return _Index(found, weights, max(total / len(found), 1.0) if found else 1.0)


def options(question: str) -> tuple[str, dict[str, str]]:
    """The question without its lettered options, and the options by letter; none unless they run A, B, …."""
    found = list(_OPTION.finditer(question))
    letters = [match["letter"] for match in found]
    start = next((i for i, letter in enumerate(letters) if letters[i : i + 2] == ["A", "B"]), None)
    if start is None:
        return question, {}
    run = [match for place, match in enumerate(found[start:]) if match["letter"] == chr(ord("A") + place)]
    return question[: run[0].start()], {match["letter"]: match["text"].strip() for match in run}


@dataclass(frozen=True, slots=True)
class Found:
    """An answer and what it rests on."""

    answer: str
    reason: str

    def as_json(self) -> str:
        """The reply as a reader gives it."""
        return json.dumps({"answer": self.answer, "reason": self.reason}, ensure_ascii=False)


def answer(parts: PromptParts) -> Found:
    """The best sentence (of equals the shortest, then the first), or the option that the sentences support most."""
    index = _index(parts.items)
    stem_text, shown = options(parts.question)
    scores = index.scores(content_words(stem_text))
    if shown:
        return _option(index, scores, shown)
    best = max(range(len(scores)), key=lambda i: (scores[i], -len(index.sentences[i].text), -i), default=None)
    if best is None or scores[best] == 0:
        return Found(UNKNOWN, UNKNOWN_REASON)
    return Found(index.sentences[best].text, _reason(index.sentences[best]))


def _reason(sentence: Sentence) -> str:
    return f"The context says: {sentence.text[:_REASON_CHARS]}"


def _option(index: _Index, scores: Sequence[float], shown: dict[str, str]) -> Found:
    """The option whose words a sentence holds, weighed by what that sentence shares with the question."""
    best, letter, support = 0.0, "", 0
    for each, text in shown.items():
        words = content_words(text) or frozenset(word.lower() for word in _WORD.findall(text))
        for place, sentence in enumerate(index.sentences):
            covered = len(words & sentence.words) / len(words) if words else 0.0
            if covered and (value := covered * (scores[place] + 0.01)) > best:
                best, letter, support = value, each, place
    if not letter:
        return Found(UNKNOWN, UNKNOWN_REASON)
    return Found(letter, _reason(index.sentences[support]))


def read(messages: Sequence[Message]) -> PromptParts:
    """Context and question of any chat: our own prompts exactly, others by their last question."""
    parts = split_prompt(messages)
    if parts is not None:
        return parts
    lines = [line for message in messages if message.role == "user" for line in message.content.splitlines()]
    asking = [place for place, line in enumerate(lines) if line.rstrip().endswith(("?", "？"))]
    at = asking[-1] if asking else max((place for place, line in enumerate(lines) if line.strip()), default=-1)
    question = lines[at] if lines else ""
    context = "\n".join(line for place, line in enumerate(lines) if place != at)
    return PromptParts((ContextItem(context),), question, "", "")
