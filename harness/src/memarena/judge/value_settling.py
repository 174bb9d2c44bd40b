"""Does an answer end by giving its value in so many words (``the one that answers your question is X``)?

What comes before it may speak of sources, of candidates that were looked at and set aside, or of the question: rules
that look at a whole answer see rivals and doubts there. A sentence that says outright which value is the answer settles
them, if nothing behind it takes that back. Read off an answer's words with signs for values
(:mod:`memarena.judge.value_wording`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memarena.judge.value_wording import RIVAL, VALUE, class_of_word, sentences_of

_NOUN = (
    r"(?:answer|value|1|one|result|reply|entry|detail|fact|statement|information|bit|thing|version|response|conclusion)"
)
_QUALITY = r"(?:(?:final|correct|right|true|actual|real|only|short|exact|relevant|recorded|stored|proper|whole) )*"
_BETWEEN = r"(?: (?!zq[vcaox])[^\W_]+){0,7}?"
_GIVES = re.compile(
    rf"(?:\b(?:the|your|my|that|this) {_QUALITY}{_NOUN}{_BETWEEN} (?:is|was|reads)|"
    rf"(?:^|[.!?\n] ?){_QUALITY}(?:answer|value|conclusion|result) :)"
    rf"(?: (?:therefore|thus|clearly|simply|just|indeed|:|the|an?))* {VALUE}\b|"
    rf"\b{VALUE} (?:is|was|would be)(?: \w+ly)? (?:the|your|my) {_QUALITY}{_NOUN}\b|"
    rf"\b{VALUE} (?:is|was) what (?:you|the question) (?:want|need|seek|ask|asks|asked|wanted|needed|are)\b|"
    rf"\b{VALUE} [;,\u2014-] (?:and )?that is (?:the|your|my) {_QUALITY}{_NOUN}\b"
)
_GIVES_RIVAL = re.compile(
    rf"\b{_QUALITY}{_NOUN}{_BETWEEN} (?:is|was|reads|:)(?: (?:therefore|thus|clearly|simply|just|indeed|:|the|an?))* "
    rf"{RIVAL}\b"
)
_LABEL = 4
"""A colon behind so few words ends a label, which belongs to what it gives."""
_AGAINST = frozenset(("NEG", "DOUBT", "GUESS", "WRONG", "UNDO"))
_TAKES_BACK = frozenset(("DOUBT", "GUESS", "WRONG", "UNDO", "CONTRAST"))
"""Denial behind it speaks of something else, or rules see what it denies."""
_ASIDE = frozenset(("different", "another", "other", "unrelated", "separate", "elsewhere", "else", "aside", "out"))
_OPEN = frozenset(("or", "?", "if", "whether", "unless", "either", "among"))


def settles(raw: Sequence[str]) -> bool:
    """Whether the last sentence that gives a value says outright that it is the answer, and nothing speaks against it.

    Args:
        raw: the answer's words with signs for values (:func:`memarena.judge.value_wording.raw_words`).
    """
    said = sentences_of(raw)
    giving = [i for i, sentence in enumerate(said) if _GIVES.search(" ".join(sentence))]
    if not giving:
        return False
    at = giving[-1]
    own = _own_part(said[at])
    if _OPEN & set(said[at]) or _against(own, _AGAINST) or RIVAL in said[at]:
        return False
    if any(RIVAL in sentence or _against(sentence, _TAKES_BACK) for sentence in said[at + 1 :]):
        return False
    return all(_set_aside(sentence) for sentence in said[:at] if RIVAL in sentence)


_DENIED_RIVAL = re.compile(
    rf"(?: ,)?(?: and| but)? not(?: (?:as|for|on|in|at|to|by|with|the|an?|from|something like|any kind of|"
    rf"(?:dr|mr|ms|mrs|prof)(?: \.)?))* {RIVAL}\b"
    rf"(?! or\b)(?=(?: [.,;!)]| (?:in case|though|even if|as|at all|nor)\b|$))"
)


def without_denied(raw: Sequence[str]) -> list[str]:
    """The words without a rival behind ``not``, for their weighing: who denies a rival gives no second one."""
    text = " ".join(raw)
    at = max(0, text.find(VALUE))
    return [word for word in (text[:at] + _DENIED_RIVAL.sub("", text[at:])).split(" ") if word]


def _own_part(sentence: Sequence[str]) -> Sequence[str]:
    """The part of a sentence that gives the value: behind a colon or a semicolon, and up to the next comma."""
    ends = [i for i, word in enumerate(sentence[: sentence.index(VALUE)]) if word in (":", ";") and i > _LABEL]
    behind = sentence.index(VALUE)
    stops = [i for i, word in enumerate(sentence) if i > behind and word in (",", ";")]
    return sentence[ends[-1] + 1 if ends else 0 : stops[0] if stops else len(sentence)]


def _set_aside(sentence: Sequence[str]) -> bool:
    """Whether a sentence that names a rival says that it is none."""
    if _GIVES_RIVAL.search(" ".join(sentence)):
        return False
    return bool(_ASIDE & set(sentence)) or _against(sentence, frozenset(("NEG", "WRONG")))


def _against(sentence: Sequence[str], classes: frozenset[str]) -> bool:
    return any(class_of_word().get(word) in classes for word in sentence)
