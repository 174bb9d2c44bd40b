"""Decides whether the wording around a value commits to it, by a linear model over masked words.

``It might be VALUE or RIVAL`` names the value and does not answer. It is the last step of ``compare.py``. Values and
people are masked, and a word outside the model's word list counts as one of the question's, of the evidence's, or as
unknown: the model sees only wordings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from memarena_dataset.values.words import stem

from memarena.judging.linear_model import stored_model
from memarena.judging.tables import data_file
from memarena.judging.typed_value.claims import Statement
from memarena.judging.typed_value.masking import Mask, Token
from memarena.judging.typed_value.question import OpenQuestion

MODEL = "commitment"
WORDS = "wording_words.v1.txt"
"""The model's word list; other words become ``q``, ``e``, ``x`` or ``#`` (:func:`_word_class`)."""
_AROUND = 7
"""Words before and after a value that count as near it."""
_APART = "APART"
"""The word for a value that the answer states as another person's, as the other version, or as wrong."""
_CONTRACTED = {"n't": "not", "'s": "is", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'m": "am"}
_HAVE_BASES = frozenset(("it", "that", "he", "she", "there", "here", "what", "who", "where", "when", "how"))
"""Words after which ``'s`` is ``is`` and not a possessive."""


@dataclass(frozen=True)
class Wording:
    """The words of an answer with masks; ``shape`` is ``plain``, ``counterfactual`` or ``conflict``."""

    words: tuple[str, ...]
    shape: str

    @classmethod
    def of(cls, question: OpenQuestion, statement: Statement, apart: Collection[int]) -> Wording:
        """Return the wording of a statement. ``apart`` are the claims, by token index, that the answer explains."""
        kind = question.gold.kind
        shape = kind if kind in ("conflict", "counterfactual") else "plain"
        return cls(tuple(_words(question, statement.tokens, apart)), shape)

    def features(self) -> Iterator[str]:
        """Yield runs of one to three words, those of one and two also by shape, and the words near each value."""
        framed = ("^", *self.words, "$")
        shape = self.shape[:3]
        for width in (1, 2, 3):
            for start in range(len(framed) - width + 1):
                run = " ".join(framed[start : start + width])
                yield run
                if width < 3 and self.shape != "plain":
                    yield f"{shape}|{run}"
        for index, word in enumerate(self.words):
            if word in ("VALUE", "CHANGED"):
                near = self.words[max(0, index - _AROUND) : index]
                yield from (f"{w}<{word}" for w in near)
                yield from (f"{word}>{w}" for w in self.words[index + 1 : index + 1 + _AROUND])
        if "RIVAL" in self.words:
            yield f"{shape}|has RIVAL"


def commits(wording: Wording) -> bool:
    """Whether the wording gives its value as the answer."""
    return stored_model(MODEL).score(wording.features()) > 0


def _words(question: OpenQuestion, tokens: Sequence[Token], apart: Collection[int]) -> Iterator[str]:
    last = ""
    for index, token in enumerate(tokens):
        for word in _token_words(question, token, index in apart):
            # Of words that only show the subject of the talk, several in a row count once.
            if word != last or word not in ("q", "e", "x", "#"):
                yield word
            last = word


def _token_words(question: OpenQuestion, token: Token, apart: bool) -> Iterable[str]:
    if token.mask is not None and (token.mask is not Mask.ASKED or token.word == token.mask.value):
        return (_APART if apart else token.mask.value,)
    return (_word_class(question, word) for word in _spell_contraction(token.word))


def _word_class(question: OpenQuestion, word: str) -> str:
    """Return a word that the model knows as it is, else its class: number, question's, evidence's or unknown."""
    if word in known_words() or not word[:1].isalnum():
        return "¶" if word == "\n" else word
    if word[:1].isdigit():
        return "#"
    base = stem(word)
    if base in question.question_words:
        return "q"
    return "e" if base in question.evidence_words else "x"


@lru_cache(maxsize=8192)
def _spell_contraction(word: str) -> tuple[str, ...]:
    """Return the words of a contraction; of another word, the word without ``'s``."""
    for ending, full in _CONTRACTED.items():
        base = word.removesuffix(ending)
        if base != word and base and (ending != "'s" or base in _HAVE_BASES):
            # "can't" is "ca" and "n't".
            return ({"ca": "can", "wo": "will", "sha": "shall"}.get(base, base), full)
    return (word.removesuffix("'s"),)


@cache
def known_words() -> frozenset[str]:
    """Return the words that the model knows."""
    return frozenset(line for line in data_file(WORDS).decode().splitlines() if not line.startswith("#"))
