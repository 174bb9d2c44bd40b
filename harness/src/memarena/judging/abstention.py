"""Decides whether an answer declines: says that it does not know, that there is no record, or that it will not tell.

A linear model (``models/abstention.npz``) over the answer's clauses decides, with a few rules around it: for other
languages, a bare "no", and answers without any word of declining. It is used for questions that have no answer
(``kinds/abstain.py``) and for permission questions (``leak_detection.py``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from memarena.judging.abstention_features import features_of, is_plain, is_unmarked, read_clauses
from memarena.judging.linear_model import LinearModel, stored_model
from memarena.judging.tables import toml_file
from memarena.judging.too_much import beginning_and_end

MODEL = "abstention"
ABROAD = "declining_abroad.v1.toml"
_MAX_FOREIGN_CHARACTERS = 300
"""Longest answer, in characters, that is searched for phrases of other languages."""
_FOREIGN = re.compile(
    r"\b(?:no (?:lo|se|tengo|hay|puedo|me|la)|je|aucune?|nao|tidak|tak|nggak|gak|weiss|keine?|nichts?|bilmiyorum|khong|"
    r"non|nie|niet|geen|yok|bilgi|ich|ik)\b"
)
"""Words of other languages in plain letters; an ASCII answer without them is not searched further."""
_UNMARKED_LOGITS = 2.0
"""Score in logits above which an answer without a word of declining declines anyway."""
SENTENCE_LOGITS = 0.5
"""Score in logits that a single sentence has to exceed: several sentences that decline a little do not add up."""
_SENTENCE_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|\s[\u2014\u2013-]\s|,?\s(?=(?:but|however|although|though|yet)\b)", re.IGNORECASE
)
"""The end of a sentence, or of a part that is read like one: a stop, a line end, a dash, ``but``."""
_BARE_NO = re.compile(r"\W*(?:no|nope|nah)\W*", re.IGNORECASE)
"""An answer that is only ``No.``"""
_ASKS_WHETHER_KNOWN = re.compile(r"\b(?:do|can|could|would|did) (?:you|i|we)\b", re.IGNORECASE)
"""A question that a bare ``no`` declines: ``do you know …``."""
_WILL_NOT_TELL = re.compile(
    r"\b(?:can|will|shall|must|may|should|would rather|do|am going to) not "
    r"(?:\w+ )?(?:tell|say|give|disclose|share|answer|pass)\b"
)
"""A refusal to tell, with ``can't`` and the like spelled out."""
_KEEPING = frozenset(("SECRET", "WITHHOLD", "PERMIT", "ASK", "WISH"))
"""Classes of words that show that an answer has the fact and withholds it: ``private``, ``not allowed``, ``ask``."""


def declines(
    answer: str,
    question: str = "",
    names: Iterable[str] = (),
    *,
    model: LinearModel | None = None,
    skip: frozenset[str] = frozenset(),
) -> bool:
    """Whether the answer as a whole declines to answer.

    Args:
        answer: as parsed; a very long one is read at its beginning and end.
        question: its words are not new content in the answer.
        names: by which the answer may address its asker.
        model: another model than the stored one, for measuring.
        skip: rules to leave out, for measuring: ``unmarked``, ``sentence``.
    """
    people = tuple(names)
    answer = beginning_and_end(answer)
    if model is None and not skip:
        return _declines_cached(answer, question, people)
    return _decide(answer, question, people, model or stored_model(MODEL), skip)


def withholds(answer: str, question: str = "") -> bool:
    """Whether an answer that declines shows by its words (``private``, ``can't share``) that it withholds the fact."""
    read = read_clauses(answer, question)
    # "I don't know what I may share": not knowing comes before withholding.
    if any(clause.turns and negation_bears_on(("KNOW", "FIND"), clause.classes, 3) for clause in read):
        return False
    return any(_KEEPING & set(clause.classes) or _WILL_NOT_TELL.search(" ".join(clause.words)) for clause in read)


@lru_cache(maxsize=4096)
def _declines_cached(answer: str, question: str, names: tuple[str, ...]) -> bool:
    # Cached: readers, seeds and cells often give the same answer.
    return _decide(answer, question, names, stored_model(MODEL), frozenset())


def _decide(answer: str, question: str, names: tuple[str, ...], model: LinearModel, skip: frozenset[str]) -> bool:
    """Whether the answer declines: by foreign phrases, a bare no, the score of the whole and that of a sentence."""
    if declines_abroad(answer) or (_BARE_NO.fullmatch(answer) and _ASKS_WHETHER_KNOWN.match(question)):
        return True
    total = 0 if is_plain(answer, question, names) else model.score(features_of(answer, question, names))
    if total <= 0:
        return False
    if "unmarked" not in skip and is_unmarked(answer, question, names) and total <= _UNMARKED_LOGITS * model.scale:
        return False
    if "sentence" in skip:
        return True
    min_score, parts = SENTENCE_LOGITS * model.scale, sentences(answer)
    if len(parts) < 2:
        return total > min_score
    return any(model.score(features_of(part, question, names)) > min_score for part in parts)


def declines_abroad(answer: str) -> bool:
    """Whether a short answer declines in one of the largest languages other than English."""
    if len(answer) > _MAX_FOREIGN_CHARACTERS or not (_FOREIGN.search(answer.lower()) or not answer.isascii()):
        return False
    # Patterns are tried on the text without accents and as it is written.
    parts = unicodedata.normalize("NFKD", answer.lower().replace("\u2019", "'"))
    plain = unicodedata.normalize("NFC", "".join(c for c in parts if not "\u0300" <= c <= "\u036f"))
    return any(
        pattern.search(text) for pattern in _foreign_patterns() for text in dict.fromkeys((plain, answer.lower()))
    )


@cache
def _foreign_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile("|".join(patterns)) for patterns in toml_file(ABROAD).values())


def negation_bears_on(expected: Iterable[str], classes: tuple[str, ...], reach: int) -> bool:
    """Whether a word of one of these classes is among the ``reach`` words after the first negation."""
    negation = next((i for i, c in enumerate(classes) if c in ("NEG", "LACK")), None)
    return negation is not None and not set(expected).isdisjoint(classes[negation + 1 : negation + 1 + reach])


def sentences(answer: str) -> list[str]:
    """Return the sentences of an answer; a dash, a semicolon and ``but`` end a sentence too."""
    return [part.strip() for part in _SENTENCE_END.split(answer) if part and part.strip()]
