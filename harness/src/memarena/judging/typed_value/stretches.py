"""Decides which stretch of an answer is about what the question asks.

A stretch is a range of tokens between two boundaries of the answer (``segments.py``). Its matter shows by words of the
question, by people who are named, and by things that neither question nor evidence has. Asked about the shoulder, ``You
see VALUE for your back, whereas the shoulder is a case for RIVAL`` names the value, and answers with another one.
"""

from __future__ import annotations

import itertools

from memarena_dataset.model import Family
from memarena_dataset.values import TermValue
from memarena_dataset.values.terms import is_everyday
from memarena_dataset.values.words import stem

from memarena.judging.typed_value.claims import Claim, Holder, Statement
from memarena.judging.typed_value.masking import Mask, Token
from memarena.judging.typed_value.question import OpenQuestion, Version
from memarena.judging.typed_value.segments import phrases, segment_of, words_of

_ARTICLES = frozenset(("the", "a", "an"))
_COPULAS = frozenset(("is", "are", "was", "were"))
_BARE = _ARTICLES | frozenset(
    ("it", "it's", "is", "was", "that", "that's", "this", "so", "then", "and", "namely", "s", "with", "for", "at", "by")
)
"""Words that say nothing of a value."""
_ASKER = frozenset(("you", "your", "yours", "yourself"))
"""Words for the asker, who is another person if the question is not about the asker."""


def is_answered_elsewhere(question: OpenQuestion, statement: Statement, claim: Claim) -> bool:
    """Whether a claim's stretch is about something else, and another one answers the question with another value."""
    if question.gold.kind == "counterfactual" or question.record.instance.family is Family.METADATA:
        return False
    claim_stretch = segment_of(statement.tokens, claim.at)
    if _question_words(question, statement, claim_stretch) or not has_predicate(statement, claim_stretch):
        return False
    return any(
        _answers(question, statement, rival, claim) for rival in statement.of(Mask.RIVAL)
    ) or _has_unknown_noun_elsewhere(question, statement, claim_stretch)


def _answers(question: OpenQuestion, statement: Statement, rival: Claim, claim: Claim) -> bool:
    """Whether a rival value, in another stretch than the claim's, is stated as the answer to the question."""
    if rival.denied or rival.version is Version.FORMER:
        return False
    if rival.holder not in (claim.holder, Holder.ASKED) and not (question.own and rival.holder is None):
        return False  # it is another person's value
    stretch = segment_of(statement.tokens, rival.at)
    if stretch == segment_of(statement.tokens, claim.at) or _is_in_brackets(statement, stretch):
        return False
    return not names_other_person(question, statement, stretch) and bool(_question_words(question, statement, stretch))


def _is_in_brackets(statement: Statement, stretch: tuple[int, int]) -> bool:
    low, high = stretch
    around = [token.word for token in (*statement.tokens[max(0, low - 1) : low], *statement.tokens[high : high + 1])]
    return around == ["(", ")"]


def names_more(question: OpenQuestion, statement: Statement, claim: Claim, other: Claim) -> bool:
    """Whether a claim's stretch has all words of the question that another claim's has, and more of them."""
    stretches = (segment_of(statement.tokens, c.at) for c in (claim, other))
    more, less = (_question_words(question, statement, stretch) for stretch in stretches)
    return more > less


def names_other_person(question: OpenQuestion, statement: Statement, stretch: tuple[int, int]) -> bool:
    """Whether a stretch names a person whom the question does not ask about."""
    tokens = statement.tokens[slice(*stretch)]
    return any(t.mask is Mask.OTHER or t.word == "'s" or (t.word in _ASKER and not question.own) for t in tokens)


def has_predicate(statement: Statement, stretch: tuple[int, int]) -> bool:
    """Whether a stretch has words other than its value and words that say nothing of it (:data:`_BARE`)."""
    return any(t.word not in _BARE for t in _plain_tokens(statement, stretch))


def _question_words(question: OpenQuestion, statement: Statement, stretch: tuple[int, int]) -> set[str]:
    """Return the stems of the question's words in a stretch, without names."""
    return {stem(token.word) for token in _plain_tokens(statement, stretch)} & question.matters


def _plain_tokens(statement: Statement, stretch: tuple[int, int]) -> list[Token]:
    return [t for t in statement.tokens[slice(*stretch)] if t.mask is None and t.word[:1].isalnum()]


def _has_unknown_noun_elsewhere(question: OpenQuestion, statement: Statement, claim_stretch: tuple[int, int]) -> bool:
    """Whether a thing is asked for, and another stretch with words of the question names an unknown one."""
    if not all(isinstance(value, TermValue) for value in question.required):
        return False
    stretches = {segment_of(statement.tokens, n) for n, t in enumerate(statement.tokens) if t.mask is None}
    return any(
        _question_words(question, statement, stretch) and _has_unknown_noun(question, statement, stretch)
        for stretch in stretches - {claim_stretch}
    )


def _has_unknown_noun(question: OpenQuestion, statement: Statement, stretch: tuple[int, int]) -> bool:
    """Whether an article or copula precedes a word that neither question nor evidence has: ``the tin globe``."""
    low, high = stretch
    # No table lists the things that an answer may invent, so a word counts as one if nothing else has it.
    known_stems = question.question_words | question.evidence_words
    for n in range(low, high - 1):
        lead = statement.tokens[n].word
        ahead = (token.word for token in statement.tokens[n + 1 : min(n + 4, high)])
        words = list(itertools.takewhile(str.isalpha, ahead))
        leads = lead in _ARTICLES or (lead in _COPULAS and n + 1 + len(words) == high)
        if leads and any(stem(word) not in known_stems and not is_everyday(word) for word in words):
            before = words_of(statement.tokens, low, n + 1)
            if not phrases("denied_before").search(before):
                return True
    return False
