"""Splits a gold that names several right answers: ``25 minutes and 50 seconds (or 25:50)`` is two.

It splits only what the gold marks as another right answer, and ``X or Y`` if both sides are one value in two wordings.
A gold that merely contains "or" is not split, since "tea or coffee" may be one answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memarena_dataset.values.mentions import AmountMention, DateMention, DurationMention, Mention, TimeMention
from memarena_dataset.values.reading import read_text

_PART = r"(?:[^.;]|[.](?=\S))+?"
"""Text within one sentence; the point of ``7.5`` does not end one."""
# "... is also acceptable", "... would be correct as well": words that state another answer, with "too" or the like.
_TOO = (
    r"(?:is|are|was|were|would be|will be|can be|may be)?\s*"
    r"(?:(?:also|equally|both|all)\s+(?:be\s+)?(?:an?\s+)?(?:acceptable|accepted|correct|allowed)"
    r"|(?:an?\s+)?(?:acceptable|accepted|correct)(?:\s+answers?)?\s+(?:too|as well))(?:\s+answers?)?"
)
# The same, or without "too": "... is acceptable".
_ACCEPTED = rf"(?:{_TOO}|(?:is|are|would be)\s+(?:acceptable|accepted))"
_STATED_TOO = re.compile(rf"(?P<alt>{_PART})\s+{_TOO}", re.IGNORECASE)
_ALSO_ACCEPTED = re.compile(rf"(?P<alt>{_PART})\s+{_ACCEPTED}", re.IGNORECASE)
"""Another answer within brackets, where a bare "acceptable" is a remark on the answer and not a part of it."""
# "also accept: X", "alternatively, X".
_LISTED = re.compile(
    r"(?:also\s+(?:accept(?:able|ed)?|correct)(?:\s+(?:is|are))?:?|accept(?:able|ed)?:|alternatively,?)\s+(?P<alt>.+)",
    re.IGNORECASE,
)
_LAST_SENTENCE = re.compile(rf"(?P<main>.+?)[.;]\s+(?P<rest>{_PART})[.]?", re.DOTALL)
_LAST_BRACKETS = re.compile(r"(?P<main>.+?)\s*[(\[](?P<inside>[^()\[\]]+)[)\]]\s*[.]?", re.DOTALL)
# "either X or Y is acceptable".
_EITHER = re.compile(rf"(?:either\s+)?(?P<one>{_PART}),?\s+or\s+(?P<two>{_PART})\s+{_ACCEPTED}[.]?", re.IGNORECASE)
# "X or Y (either is fine)".
_EITHER_INSIDE = re.compile(
    r"(?:either|both|any|all)(?: one| answers?| of them)?(?: is| are)?(?: acceptable| accepted| correct| fine)",
    re.IGNORECASE,
)
# Within brackets: "or X", "also known as X".
_OR = re.compile(r"or\s+(?P<alt>.+)|(?:also\s+(?:known as|called|named)|a\.?k\.?a\.?)\s+(?P<name>.+)", re.IGNORECASE)
_VAGUE = re.compile(
    r"(?:so|more|less|fewer|longer|shorter|later|earlier|older|younger|over|under|above|below|not|similar|equivalent|"
    r"comparable|related|thereabouts|something|somewhere|anything|any|other|others|another|both|neither|none|else)\b",
    re.IGNORECASE,
)
"""Words after "or" that name no answer: ``(or so)``, ``(or something similar)``."""
# A remark on how a number was counted, which is no part of the answer: "8 days (including the first)".
_COUNTED = re.compile(r"\s*\((?:including|counting|inclusive|excluding|not counting|if)\b[^()]*\)", re.IGNORECASE)
_BETWEEN = re.compile(r",?\s+or\s+|\s+/\s+", re.IGNORECASE)
# "X, also known as Y".
_NAMED = re.compile(r"(?P<one>[^,;.]+),?\s+(?:also known as|a\.?k\.?a\.?)\s+(?P<two>[^,;.]+)", re.IGNORECASE)
_TIMES = {"once": "1 time", "twice": "2 times", "thrice": "3 times"}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_NUMBER_WITH_UNIT = re.compile(r"\d+(?:[.,]\d+)?(?P<unit>\s+[a-z]+)", re.IGNORECASE)
_NO_INITIAL = frozenset({"of", "the", "and", "for", "in"})
_LONGEST = 400
"""Maximum length of a gold that is split, in characters; a longer one is prose."""


def alternatives(text: str) -> tuple[str, ...]:
    """Return every right answer that a gold names, the main one first; only the text itself if it names no other.

    Args:
        text: a gold as it is in its data set.
    """
    stripped = text.strip()
    if len(stripped) > _LONGEST:
        return (stripped,)
    parts = list(_split(stripped))
    return (
        tuple(dict.fromkeys(_COUNTED.sub("", part).strip() or part for part in parts))
        if len(parts) > 1
        else (stripped,)
    )


def _split(text: str) -> Iterator[str]:
    brackets = _LAST_BRACKETS.fullmatch(text)
    if brackets and _EITHER_INSIDE.fullmatch(brackets["inside"].strip()):
        yield from _BETWEEN.split(brackets["main"].strip())
        return
    sentence = _LAST_SENTENCE.fullmatch(text)
    for match, others in (
        (brackets, list(_inside_brackets(brackets["inside"].strip())) if brackets else []),
        (sentence, list(_accepted(sentence["rest"].strip(), _STATED_TOO)) if sentence else []),
    ):
        if match and others:
            main = list(_split(match["main"].strip()))
            yield from main
            yield from (_with_unit(other, main[0]) for other in others)
            return
    either = _EITHER.fullmatch(text) or _NAMED.fullmatch(text)
    sides = [either["one"], either["two"]] if either else _BETWEEN.split(text)
    yield from sides if either or (len(sides) == 2 and _same(*sides)) else [text]


def _accepted(text: str, stating: re.Pattern[str]) -> Iterator[str]:
    """Yield the answers that a text states to be accepted too; none if it states anything else."""
    listed = stating.fullmatch(text) or _LISTED.fullmatch(text)
    if listed:
        yield from _BETWEEN.split(listed["alt"].strip())


def _inside_brackets(text: str) -> Iterator[str]:
    """Yield the answers that brackets after a gold name; none if they explain it."""
    alternatives = _OR.fullmatch(text)
    if alternatives is None:
        yield from _accepted(text, _ALSO_ACCEPTED)
        return
    alternative = alternatives["alt"] or alternatives["name"]
    if not _VAGUE.match(alternative):
        yield from _BETWEEN.split(alternative)


def _with_unit(other: str, main: str) -> str:
    """Add the main answer's unit to a bare number: ``7 days (8 is also acceptable)``."""
    unit = _NUMBER_WITH_UNIT.fullmatch(main)
    return f"{other}{unit['unit']}" if unit and _NUMBER.fullmatch(other) else other


def _same(left: str, right: str) -> bool:
    """Whether two texts are one value in two wordings: equal when normalised, as values, or as initials."""
    left, right = (_TIMES.get(side.strip().casefold(), side) for side in (left, right))
    plain = ["".join(re.findall(r"[^\W_]+", read_text(side).text.casefold())) for side in (left, right)]
    if plain[0] and plain[0] == plain[1]:
        return True
    values = [_value(side) for side in (left, right)]
    if values[0] is not None and values[0] == values[1]:
        return True
    return _initials(left) == _letters(right) or _initials(right) == _letters(left)


def _value(text: str) -> tuple[object, ...] | None:
    """Return the single value that a text consists of; None if it has more words, or no value."""
    read = read_text(text)
    for mention in read.mentions:
        remainder = (read.text[: mention.start] + read.text[mention.end :]).casefold()
        if not re.findall(r"[^\W_]+", re.sub(r"\b(?:at|on|in|for|the|a|an|about|times?)\b", "", remainder)):
            return _content(mention)
    return None


def _content(mention: Mention) -> tuple[object, ...] | None:
    if isinstance(mention, DurationMention):
        return "duration", round(mention.days, 6)
    if isinstance(mention, TimeMention):
        return "time", mention.minutes
    if isinstance(mention, DateMention):
        return "date", mention.readings
    return ("amount", mention.amount, mention.unit) if isinstance(mention, AmountMention) else None


def _initials(text: str) -> str | None:
    """Return the initials of two or more words; None for fewer."""
    initial_words = [word for word in re.findall(r"[^\W_]+", text) if word.lower() not in _NO_INITIAL]
    return "".join(word[0] for word in initial_words).upper() if len(initial_words) > 1 else None


def _letters(text: str) -> str:
    """Return an abbreviation without its points; "" for anything else."""
    letters = text.replace(".", "").strip()
    return letters if re.fullmatch(r"[A-Z]{2,6}", letters) else ""
