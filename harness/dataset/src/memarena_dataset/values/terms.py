"""Locates the mentions of a thing, a place or a person in a text.

A thing may be named by its phrase, with another quantity word ("ice skates" for "a pair of ice skates"), or with a typo
of one letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memarena_dataset.values.numbers import digits_for_words
from memarena_dataset.values.types import NameValue
from memarena_dataset.values.word_lists import word_list
from memarena_dataset.values.words import stem, tidy

_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*")
_ARTICLES = frozenset(("a", "an", "the"))
_DETERMINERS = _ARTICLES | frozenset(("my", "your", "his", "her", "their", "our", "its", "this", "that", "some"))
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "prof", "professor", "aunt", "uncle"))
_SAME = {
    "inside": "in", "into": "in", "within": "in", "at": "in", "beneath": "under", "underneath": "under",
    "below": "under", "onto": "on", "middle": "mid", "beginning": "early", "start": "early", "end": "late",
}  # fmt: skip
"""Synonyms within a phrase: ``inside`` counts as ``in``, ``the middle of July`` as ``mid-July``."""
# "the middle of July": the "of" is skipped, so that it equals "mid-July".
_PERIOD = re.compile(r"\b(middle|beginning|start|end)\s+of\s+(?=[A-Z])")
_QUANTITY = re.compile(
    r"^(?:a|an|the|some) (?:pair|set|piece|couple|bunch|bit|lot|number|box|bottle|jar) of (?=\S)", re.I
)
_TAIL = re.compile(r"(?<=\w) (?:of|with|for|from|in|on|by|without)\b.*", re.I | re.S)
"""Words after the noun of a thing: ``a house of cards`` is a house."""
# The preposition of a place, without which it may be named: "under the sofa" and "the sofa".
_PLACED = re.compile(
    r"^(?:in|inside|at|on|under|behind|beside|above|below|beneath) (?:the|a|an|my|her|his|their) (?=\S)", re.IGNORECASE
)
_PREPOSITIONS = frozenset(
    [
        "in",
        "into",
        "inside",
        "at",
        "on",
        "onto",
        "under",
        "underneath",
        "behind",
        "above",
        "below",
        "beneath",
        "beside",
        "near",
        "outside",
        "opposite",
        "between",
        "by",
        "over",
    ]
)
_MADE_OF = frozenset(stem(word) for word in ("made", "out", "of", "in", "that", "which", "is", "was", "from"))
"""Stems that may occur between a noun and its material or appearance."""
_LEAST_LETTERS = 5
"""Fewest letters of a word in which a typo is accepted, since short words differ by one letter."""


@dataclass(frozen=True, order=True)
class Span:
    """A part of a text, as character offsets."""

    start: int
    end: int


@dataclass(frozen=True)
class _Token:
    start: int
    end: int
    word: str


def phrase_spans(phrase: str, text: str) -> list[Span]:
    """Return the spans in which the words of a phrase occur in a row, compared by stem, without articles."""
    return _in_a_row(_words_of(phrase), _tokens(text))


def term_spans(forms: Iterable[str], text: str) -> list[Span]:
    """Return the spans of a thing or place that may be named in any of ``forms``, by position."""
    tokens = _tokens(text)
    spans: list[Span] = []
    for form in forms:
        spans += _in_a_row(_words_of(form), tokens)
        bare = _QUANTITY.sub("", form)
        if bare != form:
            spans += _in_a_row(_words_of(bare), tokens)
        placed = _PLACED.sub("", form)
        if placed != form:
            spans += [s for s in _in_a_row(_words_of(placed), tokens) if not _after_preposition(text, s.start)]
        # Looser readings only if no form was named so far: they match more than they should.
        if not spans:
            spans += _turned_round(_words_of(bare), tokens)
        if not spans and tokens and _is_short_for(form, text, tokens):
            spans.append(Span(tokens[0].start, tokens[-1].end))
    return merged(spans)


def _turned_round(phrase: Sequence[str], tokens: Sequence[_Token]) -> list[Span]:
    """Return the spans of a thing of two words with its noun first: ``the kettle made of copper``."""
    if len(phrase) != 2:
        return []
    kind, noun = phrase
    spans = []
    for n, token in enumerate(tokens):
        last = next((m for m in range(n + 2, min(n + 6, len(tokens))) if _same(tokens[m].word, kind)), None)
        if last is not None and _same(token.word, noun) and all(t.word in _MADE_OF for t in tokens[n + 1 : last]):
            spans.append(Span(token.start, tokens[last].end))
    return spans


def _is_short_for(form: str, text: str, tokens: Sequence[_Token]) -> bool:
    """Whether a text consists of some of a form's words, with its identifying noun: ``the oil lamp``.

    For a name any of its words is enough: ``Riverside`` for ``the Riverside Park``.
    """
    form_words = _words_of(_QUANTITY.sub("", form))
    text_words = _words_of(_QUANTITY.sub("", text.strip()))
    if not form_words or not text_words or not set(text_words) <= set(form_words):
        return False
    name_words = {w for m in _WORD.finditer(form) if m.group()[0].isupper() for w in _words_of(m.group())}
    telling = {*name_words, _words_of(_TAIL.sub("", _QUANTITY.sub("", form)))[-1]}
    return any(word in telling and _tells(word) for word in text_words)


def _tells(word: str) -> bool:
    """Whether a word alone identifies a thing: ``jigsaw`` does, ``green`` does not."""
    return len(word) >= 4 and not is_everyday(word) and word not in _PREPOSITIONS


def name_spans(value: NameValue, text: str) -> list[Span]:
    """Return the spans of a person: full name, aliases, first name without another surname, surname alone or titled."""
    tokens = _tokens(text)
    spans = [
        s
        for form in (value.name, *value.aliases)
        for s in _in_a_row(_words_of(form), tokens)
        if _is_name(form, text, s)
    ]
    parts = [w for w in _words_of(value.name) if w not in _TITLES]
    if len(parts) > 1:
        for span in _in_a_row(parts[:1], tokens):
            follower = re.match(r"[^\S\n]+([A-Z][\w'-]+)", text[span.end :])
            other = follower and _bare(follower.group(1)) not in (parts[-1], *word_list("function_words.v1.txt"))
            if not other and _is_name(parts[0], text, span):
                spans.append(span)
        for span in _in_a_row(parts[-1:], tokens):
            ahead = re.search(r"([A-Z][\w-]*)\.?[^\S\n]+$", text[: span.start])
            first = (
                ahead is not None
                and _bare(ahead.group(1)) not in (parts[0], *_TITLES)
                and not is_everyday(ahead.group(1))
            )
            if not first and _is_name(parts[-1], text, span):
                spans.append(span)
    return merged(spans)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans sorted by position, without those that begin within another."""
    separate: list[Span] = []
    for span in sorted(set(spans), key=lambda s: (s.start, -s.end)):
        if not separate or span.start >= separate[-1].end:
            separate.append(span)
    return separate


def _in_a_row(phrase: Sequence[str], tokens: Sequence[_Token]) -> list[Span]:
    width = len(phrase)
    if not width:
        return []
    spans = []
    for i in range(len(tokens) - width + 1):
        if _same(tokens[i].word, phrase[0]) and all(_same(tokens[i + k].word, phrase[k]) for k in range(1, width)):
            spans.append(Span(tokens[i].start, tokens[i + width - 1].end))
    return spans


def _same(word: str, expected: str) -> bool:
    return word == expected or (len(expected) >= _LEAST_LETTERS and _slip(word, expected))


@lru_cache(maxsize=65_536)
def _slip(word: str, expected: str) -> bool:
    """Whether a word is another with one letter omitted, doubled, or swapped with its neighbour.

    A replaced letter is no slip, since it often makes another word. The first letter must be right.
    """
    if word[:1] != expected[:1] or abs(len(word) - len(expected)) > 1 or word.isdigit() or expected.isdigit():
        return False
    if len(word) == len(expected):
        differ = [i for i, (a, b) in enumerate(zip(word, expected, strict=True)) if a != b]
        return (
            len(differ) == 2
            and differ[1] == differ[0] + 1
            and word[differ[0]] == expected[differ[1]]
            and word[differ[1]] == expected[differ[0]]
        )
    longer, shorter = (word, expected) if len(word) > len(expected) else (expected, word)
    at = next((i for i, (a, b) in enumerate(zip(longer, shorter, strict=False)) if a != b), len(shorter))
    if longer[:at] + longer[at + 1 :] != shorter:
        return False
    return (len(word) < len(expected) and at < len(expected) - 1) or (at > 0 and longer[at] == longer[at - 1])


def _tokens(text: str) -> tuple[_Token, ...]:
    return _read(text)


@lru_cache(maxsize=512)
def _read(text: str) -> tuple[_Token, ...]:
    tokens = []
    for match in _WORD.finditer(_PERIOD.sub(lambda m: f"{m.group(1)}{' ' * (len(m.group()) - len(m.group(1)))}", text)):
        word = _bare(match.group())
        if word not in _ARTICLES:
            tokens.append(_Token(*match.span(), _SAME.get(word) or stem(word)))
    return tuple(tokens)


@lru_cache(maxsize=4096)
def _words_of(phrase: str) -> tuple[str, ...]:
    plain = digits_for_words(tidy(phrase.replace("_", " ")))
    words = (_bare(m.group()) for m in _WORD.finditer(plain))
    return tuple(_SAME.get(w) or stem(w) for w in words if w not in _ARTICLES)


@lru_cache(maxsize=16_384)
def _bare(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.lower().removesuffix("'s"))
    return "".join(c for c in plain if c not in "'." and not unicodedata.combining(c))


def _is_name(form: str, text: str, span: Span) -> bool:
    """Whether a span is a name: one that is also an everyday word (``Will``, ``Rose``) must be capitalised."""
    bare = _words_of(form)
    everyday = len(bare) == 1 and (
        bare[0] in word_list("function_words.v1.txt") or bare[0] in word_list("common_words.v1.txt")
    )
    return not everyday or text[span.start].isupper()


def is_everyday(word: str) -> bool:
    """Whether a word, in exactly this form, is everyday English."""
    lists = ("function_words.v1.txt", "common_words.v1.txt", "talk_words.v1.txt")
    return any(word.lower() in word_list(name) for name in lists)


def _after_preposition(text: str, at: int) -> bool:
    ahead = [w for w in re.findall(r"[\w']+", text[:at].lower())[-2:] if w not in _DETERMINERS]
    return bool(ahead) and ahead[-1] in _PREPOSITIONS
