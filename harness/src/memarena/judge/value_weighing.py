"""Does the wording of an answer give the value that stands in it? Learned weights over what stands around it.

Seen are words and their classes (``text/lexicons/wording_classes.v1.txt``) side by side, on which side of the value
they stand and in which sentence, what lies between the value and a thing nobody mentioned, and a few counts. The sum of
the weights (``wording_weights.v1.json``, made by :mod:`memarena.judge.learning`) says on which side the answer is:
above 0 it gives the value, below it guesses, lists, rejects or takes back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from memarena.judge.value_wording import (
    OTHER_VERSION,
    PREMISE,
    RIVAL,
    SENTENCE_ENDS,
    UNHEARD,
    VALUE,
    class_of_word,
    is_of_matter,
    sentences_of,
    wording,
)
from memarena.text.lexicon import read_file
from memarena.text.words import stem

Shape = Literal["plain", "conflict", "counterfactual"]
WEIGHTS = "wording_weights.v1.json"
_SIGNS = frozenset((VALUE, OTHER_VERSION, PREMISE))
_POLAR = frozenset(("NEG", "WRONG", "RIGHT", "UNDO", "DOUBT", "GUESS"))
"""Classes of words that say of a value whether it holds."""
_CLAUSE_ENDS = SENTENCE_ENDS | frozenset(",;:()[]{}|") | {"\u2014", "\u2026", "and"}
_LONE = 4
"""A sentence of so few words that holds something unheard of is an item of a list."""
_FAR = 6
"""So many words may lie between a value and another thing for what lies there to be seen whole."""


@dataclass(frozen=True)
class Weights:
    """What was learned: the words that are kept as they are, and what each feature adds."""

    vocabulary: frozenset[str]
    features: Mapping[str, float]


def weigh(raw: Sequence[str], known: frozenset[str], shape: Shape, weights: Weights | None = None) -> float:
    """The sum over an answer's raw words (:func:`memarena.judge.value_wording.signed`); above 0 it gives its value.

    Args:
        raw: the answer's words, with signs for values.
        known: stems of words of the question and its evidence.
        shape: of the gold.
        weights: others than those of the package, for learning with some texts left out.
    """
    learned = weights or stored()
    said = wording(raw, learned.vocabulary, known)
    return math.fsum(learned.features.get(f, 0.0) for f in features(said, shape))


def tells_of_matter(raw: Sequence[str], known: frozenset[str]) -> bool:
    """Whether an answer has words of its question or evidence that are no words of answering: it tells something."""
    vocabulary = stored().vocabulary
    return any(is_of_matter(word, vocabulary, known) for word in raw)


@cache
def stored() -> Weights:
    """The weights of the package."""
    table: dict[str, Any] = json.loads(read_file(WEIGHTS))
    return Weights(frozenset(table["vocabulary"]), table["features"])


def features(said: Sequence[str], shape: Shape) -> set[str]:
    """Names of what is seen in a wording; each also with the shape of the gold before it."""
    classes = [_class(w) for w in said]
    found = {*_side_by_side(said, classes), *_counts(said)}
    if shape != "plain":
        found.update(_apart(said, classes))
    sentences = sentences_of(said)
    holding = [i for i, s in enumerate(sentences) if VALUE in s]
    if holding:
        found.update(_around(sentences, holding))
    return found | {f"{shape}~{name}" for name in found}


def _class(word: str) -> str:
    return class_of_word().get(word, word)


def _side_by_side(said: Sequence[str], classes: Sequence[str]) -> Iterator[str]:
    for kind, row in (("w", ["^", *said, "$"]), ("c", ["^", *classes, "$"])):
        yield from (f"{kind}2:{a} {b}" for a, b in pairwise(row))
        yield from (f"{kind}3:{a} {b} {c}" for a, b, c in zip(row, row[1:], row[2:], strict=False))
    row = ["^", *classes, "$"]
    for four in zip(row, row[1:], row[2:], row[3:], strict=False):
        if not _SIGNS.isdisjoint(four):
            yield f"c4:{' '.join(four)}"
    yield from (f"u:{stem(w) if w[0].isalpha() else w}" for w in said)
    yield from (f"k:{c}" for c in classes)


def _counts(said: Sequence[str]) -> Iterator[str]:
    for name, sign, most in (("unheard", UNHEARD, 4), ("rivals", RIVAL, 3), ("values", VALUE, 4)):
        yield f"{name}:{min(said.count(sign), most)}"
    yield f"long:{len(said).bit_length()}"


def _around(sentences: Sequence[list[str]], holding: Sequence[int]) -> Iterator[str]:
    first, last = holding[0], holding[-1]
    for position, sentence in enumerate(sentences):
        classes = [_class(w) for w in sentence]
        lone = UNHEARD in sentence and sum(w[0].isalnum() for w in sentence) <= _LONE
        if position in holding:
            yield from _in_sentence(sentence, classes)
        elif first < position < last:
            yield from (f"mid:{c}" for c in classes)
            yield "mid:lone" if lone else "mid"
        else:
            side = "pre" if position < first else "post"
            yield from _in_another(side, sentence, classes, position - last)
            yield f"{side}:lone" if lone else side
    yield f"holding:{min(len(holding), 3)}"
    yield f"sentences:{min(len(sentences), 5)}"
    yield "ends with it" if last == len(sentences) - 1 else "goes on"
    if any(sentences[i][-1] == "?" for i in holding):
        yield "asks"


def _apart(said: Sequence[str], classes: Sequence[str]) -> Iterator[str]:
    """How each of two values stands: what is said in its own clause and on which side, and what lies between them."""
    clauses = _clauses(said, classes)
    told = {sign: _told(sign, clauses) for sign in (VALUE, PREMISE, OTHER_VERSION) if sign in said}
    for sign, own in told.items():
        yield from (f"own {sign}:{c}" for c in own)
        yield f"own {sign}={' '.join(sorted(own & _POLAR))}"
    if len(told) > 1:
        yield "both=" + "|".join(f"{sign} {' '.join(sorted(own & _POLAR))}" for sign, own in told.items())
    for other in (PREMISE, OTHER_VERSION):
        if other not in told:
            continue
        at, of = said.index(VALUE) if VALUE in said else 0, said.index(other)
        low, high = sorted((at, of))
        way = "value first" if at < of else "value last"
        yield way
        yield from (f"{way}:{c}" for c in classes[low + 1 : high])
        yield from (f"{way} behind:{c}" for c in classes[high + 1 :])
        yield from (f"{way} ahead:{c}" for c in classes[:low])
        for sentence in sentences_of(said):
            if other in sentence:
                row = [_class(w) for w in sentence]
                spot = sentence.index(other)
                yield from (f"{other} left:{w}" for w in {*sentence[:spot], *row[:spot]})
                yield from (f"{other} right:{w}" for w in {*sentence[spot + 1 :], *row[spot + 1 :]})


def _clauses(said: Sequence[str], classes: Sequence[str]) -> list[tuple[set[str], set[str]]]:
    """Words and classes of each clause; a word of contrast begins one."""
    found: list[tuple[set[str], set[str]]] = [(set(), set())]
    for word, kind in zip(said, classes, strict=True):
        if word in _CLAUSE_ENDS or kind == "CONTRAST":
            found.append((set(), set()))
        found[-1][0].add(word)
        found[-1][1].add(kind)
    return found


def _told(sign: str, clauses: Sequence[tuple[set[str], set[str]]]) -> set[str]:
    return {kind for words, classes in clauses if sign in words for kind in classes}


def _in_another(side: str, sentence: Sequence[str], classes: Sequence[str], behind: int) -> Iterator[str]:
    yield from (f"{side}:{w}" for w in sentence)
    yield from (f"{side}k:{c}" for c in classes)
    yield from (f"{side}2:{a} {b}" for a, b in pairwise(["^", *classes]))
    if behind > 0:
        yield f"post{min(behind, 3)}:{classes[0]}"


def _in_sentence(sentence: Sequence[str], classes: Sequence[str]) -> Iterator[str]:
    at = [i for i, w in enumerate(sentence) if w == VALUE]
    left, right = classes[: at[0]], classes[at[-1] + 1 :]
    yield from (f"vl:{w}" for w in sentence[: at[0]])
    yield from (f"vr:{w}" for w in sentence[at[-1] + 1 :])
    yield from (f"vlk:{c}" for c in left)
    yield from (f"vrk:{c}" for c in right)
    yield f"unheard left:{UNHEARD in left}"
    yield f"unheard right:{UNHEARD in right}"
    for side, row in (("L", left[::-1]), ("R", right)):
        for sign in (UNHEARD, RIVAL):
            if sign in row:
                gap = row[: row.index(sign)]
                yield from (f"gap{side}{sign}:{c}" for c in gap)
                yield f"gap{side}{sign}#{min(len(gap), _FAR)}"
                if len(gap) <= _FAR:
                    yield f"gap{side}{sign}={' '.join(gap)}"
