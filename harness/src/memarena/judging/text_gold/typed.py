"""Decides golds in text that are, or contain, a typed value: by the value, never by the wording around it.

``"Twice"`` is ``2 times``, ``"the Friday before 15 July 2023"`` is the 14th, ``"Likely no; she prefers …"`` is no. A
different value of the gold's kind is never right, whatever words it shares with the gold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memarena_dataset.values.mentions import AmountMention, DurationMention, Mention
from memarena_dataset.values.periods import Period, periods, readable
from memarena_dataset.values.words import words

from memarena.judging.judgment import Code
from memarena.judging.text_gold.reading import TextReading

_AROUND_WORDS = """
a an the in on at of from since by during around about approximately roughly nearly almost over more than
least for it was is were are total times time old long only just exactly and or day date year month week
weekend ago late early mid middle start end beginning before after
"""
_AROUND = frozenset(_AROUND_WORDS.split())
"""Words that may stand next to a value without saying anything else."""
_OF_TALK = re.compile(
    r"\b(?:mention\w*|said|told|talk\w*|convers\w*|chat\w*|discuss\w*|session|message\w*|shared|stated|reported|dialogue|"
    r"as of|according)\b(?:\s+\w+){0,4}\s*$",
    re.IGNORECASE,
)
"""Words before the day of a conversation, which is not an answer: ``as she mentioned on``, ``in our session of``."""
_PLAIN_WORDS = 25
"""Most words of an answer whose value counts as the answer."""
_TAKES_BACK = re.compile(
    r"n't\b|\b(?:not|never|no longer|instead|but|used to|before|originally|first|planned|cannot|however)\b",
    re.IGNORECASE,
)
"""A word of negation or contrast: ``no longer``, ``instead``."""
_DIGITS = re.compile(r"\d+")
_HEDGES = re.compile(r"\b(?:or|maybe|perhaps|possibly)\b", re.IGNORECASE)
"""Between two values: ``3 or 4``, ``3, maybe 4``."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True)
class TypedOutcome:
    """The decision of a typed value: right or wrong, with its code and the answer's words that it is about."""

    correct: bool
    code: Code
    claim: str = ""


def decide_typed(question: TextReading, gold: TextReading, answer: TextReading) -> TypedOutcome | None:
    """Return the decision of the gold's typed value; None if it has none, or the value alone does not decide."""
    if gold.side and (question.asks_yes_or_no or len(gold.tokens) == 0):
        return _by_side(gold, answer)
    if gold.periods and _is_bare(gold, question):
        return _by_period(gold, answer)
    if gold.values and _is_bare(gold, question):
        return _by_value(gold, answer)
    return _decide_by_contradiction(question, gold, answer)


def _is_bare(gold: TextReading, question: TextReading) -> bool:
    """Whether the gold is only its value and words that the question already has."""
    text = readable(gold.text)
    spans: list[tuple[int, int]] = [(p.start, p.end) for p in periods(text)] or [(m.start, m.end) for m in gold.values]
    remainder = text if gold.periods else gold.counted_text
    for start, end in sorted(spans, reverse=True):
        remainder = f"{remainder[:start]} {remainder[end:]}"
    question_words = set(question.words)
    return all(word in _AROUND or word in question_words for word in words(remainder))


# ------------------------------------------------------------------ yes and no


def _by_side(gold: TextReading, answer: TextReading) -> TypedOutcome | None:
    """Return the decision of a gold that is yes or no; None if the answer takes no side, or its reason matters too."""
    side = answer.side
    if side is None:
        return None
    if side != gold.side:
        return TypedOutcome(False, Code.OTHER_VALUE, side)
    if gold.is_guess or len(gold.tokens) == 0:
        return TypedOutcome(True, Code.STATES_VALUE, side)
    return None


# ------------------------------------------------------------------ dates


def _by_period(gold: TextReading, answer: TextReading) -> TypedOutcome | None:
    """Return the decision of a gold that is a date; None if the answer has other dates too, or is not plain."""
    text = readable(answer.text)
    stated_periods = [p for p in answer.periods if not _is_of_talk(text, p)] or list(answer.periods)
    if not stated_periods:
        return TypedOutcome(_has_words(gold, answer), Code.MISSING_VALUE)
    for period in gold.periods:
        agreeing = [p for p in stated_periods if p.states(period)]
        if not agreeing:
            return TypedOutcome(False, Code.OTHER_VALUE, text[stated_periods[0].start : stated_periods[0].end])
        low, high = _sentence_span(text, agreeing[0].start)
        # A period that is over a week longer, such as the year of a day, does not compete with the gold's.
        rivals = [
            p for p in stated_periods if low <= p.start < high and not p.overlaps(period) and p.days <= period.days + 7
        ]
        if rivals and rivals[0].start < agreeing[0].start:
            return TypedOutcome(False, Code.OTHER_VALUE, text[rivals[0].start : rivals[0].end])
        if any(not p.overlaps(period) for p in stated_periods) or not _is_plain(answer):
            return None
    return TypedOutcome(True, Code.STATES_VALUE, text[agreeing[0].start : agreeing[0].end])


def _is_of_talk(text: str, period: Period) -> bool:
    """Whether a date is that of a conversation in which something was reported: ``as she mentioned on DATE``."""
    return bool(_OF_TALK.search(text[max(0, period.start - 60) : period.start]))


def _sentence_span(text: str, position: int) -> tuple[int, int]:
    ends = [0, *(m.end() for m in _SENTENCE.finditer(text)), len(text)]
    return max(e for e in ends if e <= position), min((e for e in ends if e > position), default=len(text))


# ------------------------------------------------------------------ numbers, lengths, times


def _by_value(gold: TextReading, answer: TextReading) -> TypedOutcome | None:
    """Return the decision of a gold that is a number, length or time; None if other values or wordings matter."""
    text = answer.counted_text
    claim = ""

    def is_of_gold(mention: Mention) -> bool:
        return any(_is_same_value(mention, value, text, gold.counted_text) for value in gold.values)

    for gold_value in gold.values:
        same = [m for m in answer.values if _is_same_value(m, gold_value, text, gold.counted_text)]
        others = [m for m in answer.values if _is_kin(m, gold_value) and not is_of_gold(m)]
        if not same:
            other_text = text[others[0].start : others[0].end] if others else ""
            code = Code.OTHER_VALUE if others else Code.MISSING_VALUE
            return TypedOutcome(not others and _has_words(gold, answer), code, other_text)
        low = _sentence_span(text, same[0].start)[0]
        # "3 or 4" commits to neither, also if the gold's value is the second of them.
        earlier = next((m for m in others if low <= m.start < same[0].start), None)
        if earlier and _HEDGES.search(text[earlier.start : same[0].start]):
            return TypedOutcome(False, Code.NOT_COMMITTED, text[earlier.start : same[0].end])
        if others or not _is_plain(answer):
            return None
        claim = text[same[0].start : same[0].end]
    return TypedOutcome(True, Code.STATES_VALUE, claim)


def _is_plain(answer: TextReading) -> bool:
    """Whether an answer is short, and without a word of contrast or negation, so that its value is the answer."""
    return len(answer.words) <= _PLAIN_WORDS and not _TAKES_BACK.search(answer.text)


def _is_same_value(a: Mention, b: Mention, text: str, gold_text: str) -> bool:
    """Whether two values are the same; a bare number equals one with any unit."""
    if a.same(b):
        return True
    # "4 tournaments" for "four", "six" for "6 years": a bare number gets the unit of the other.
    if isinstance(a, AmountMention) and isinstance(b, AmountMention):
        return a.amount == b.amount and "%" not in (a.unit, b.unit)
    if isinstance(a, AmountMention) and isinstance(b, DurationMention):
        return a.unit is None and _number(gold_text[b.start : b.end]) == a.amount
    if isinstance(a, DurationMention) and isinstance(b, AmountMention):
        return b.unit is None and _number(text[a.start : a.end]) == b.amount
    return False


def _number(text: str) -> float | None:
    match = re.match(r"\D*(\d+(?:\.\d+)?)\b", text)
    return float(match.group(1)) if match else None


def _is_kin(a: Mention, b: Mention) -> bool:
    if a.kind != b.kind:
        return isinstance(a, AmountMention | DurationMention) and isinstance(b, AmountMention | DurationMention)
    return True


def _has_words(gold: TextReading, answer: TextReading) -> bool:
    """Whether the answer has the gold's words as they are, in a row."""
    return f" {' '.join(gold.words)} " in f" {' '.join(answer.words)} "


# ------------------------------------------------------------------ a clause that holds a value


def _other_digits(gold: TextReading, question: TextReading, answer: TextReading) -> bool:
    """Whether the answer leaves out a number of the gold and has one that neither gold nor question has."""
    gold_numbers, answer_numbers = (set(_DIGITS.findall(text.counted_text)) for text in (gold, answer))
    return bool(gold_numbers - answer_numbers) and bool(
        answer_numbers - gold_numbers - set(_DIGITS.findall(question.counted_text))
    )


def _decide_by_contradiction(question: TextReading, gold: TextReading, answer: TextReading) -> TypedOutcome | None:
    """Return a wrong outcome if the answer has another value instead of one in the gold's clause; else None."""
    text, plain = answer.counted_text, len(answer.words) <= _PLAIN_WORDS
    for value in gold.values:
        unit = getattr(value, "unit", None)
        kin = [m for m in answer.values if m.kind == value.kind and getattr(m, "unit", None) == unit]
        if (
            (plain or unit)
            and kin
            and not any(_is_same_value(m, value, text, gold.counted_text) for m in answer.values)
        ):
            return TypedOutcome(False, Code.OTHER_VALUE, text[kin[0].start : kin[0].end])
    if plain and _other_digits(gold, question, answer):
        return TypedOutcome(False, Code.OTHER_VALUE, answer.text)
    for period in gold.periods if plain else ():
        if answer.periods and not any(p.overlaps(period) for p in answer.periods):
            first = answer.periods[0]
            return TypedOutcome(False, Code.OTHER_VALUE, readable(answer.text)[first.start : first.end])
    return None
