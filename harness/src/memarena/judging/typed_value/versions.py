"""Decides which version of a changed value a claim gives: the former or the current one.

The words between two values decide first (``OLD, moved to NEW``, ``NEW (formerly OLD)``), then the words right after a
value, then those nearest before it. If a question asks for a version, a value without one has the version that the
answer's other values leave over.
"""

from __future__ import annotations

from collections.abc import Sequence

from memarena.judging.typed_value.masking import Token
from memarena.judging.typed_value.question import Version
from memarena.judging.typed_value.segments import VALUES, phrases, sentence_of, words_of

_SMALL = frozenset(["the", "a", "an", "it", "is", "was", "it's", "at", "in", "on", "be", "been", "as"])
"""Words that may be between what joins two values and the second of them: ``OLD , moved to the NEW``."""
OPPOSITE = {Version.FORMER: Version.CURRENT, Version.CURRENT: Version.FORMER}


def version_of(tokens: Sequence[Token], low: int, at: int, high: int) -> Version | None:
    """Return the version of the value at index ``at`` of the segment ``low`` to ``high``; None if no word tells."""
    # The first of these that decides counts; the sentence's beginning is read last, if no other value is in it.
    start, end = sentence_of(tokens, at)
    decided = _by_order(tokens, start, at, end)
    if decided is not None:
        return decided
    after = words_of(tokens, at + 1, end)
    for section, version in (("former_tight", Version.FORMER), ("current_tight", Version.CURRENT)):
        if phrases(section).match(after):
            return version
    decided = _last_version_word(words_of(tokens, low, at))
    if decided is None:
        decided = _first_version_word(words_of(tokens, at + 1, min(high, _next_value(tokens, at, end))))
    if decided is None and low > start and not any(t.mask in VALUES for t in tokens[start:low]):
        decided = _last_version_word(words_of(tokens, start, low))
    return decided


def _by_order(tokens: Sequence[Token], start: int, at: int, end: int) -> Version | None:
    """Return the version by what joins the value with the next one, else with the previous one; else None."""
    following, previous = _next_value(tokens, at, end), _previous_value(tokens, start, at)
    if following < end and (turn := _version_by_words_between(tokens, start, at, following)):
        return OPPOSITE[turn]
    return _version_by_words_between(tokens, start, previous, at) if previous >= start else None


def _version_by_words_between(tokens: Sequence[Token], start: int, first: int, other: int) -> Version | None:
    """Return the version of the second of two values by the words between them; None if they do not tell."""
    # The small words right before the second value are left out: "moved to the NEW" is read as "moved to".
    last = other
    while last > first + 1 and tokens[last - 1].word in _SMALL:
        last -= 1
    between = words_of(tokens, first + 1, last)
    if phrases("turns_into").search(between):
        return Version.CURRENT
    if phrases("comes_after").search(between):
        return Version.FORMER
    leads = between == "to " and phrases("from_to").search(words_of(tokens, start, first))
    return Version.CURRENT if leads else None


def _next_value(tokens: Sequence[Token], at: int, end: int) -> int:
    return next((n for n in range(at + 1, end) if tokens[n].mask in VALUES), end)


def _previous_value(tokens: Sequence[Token], start: int, at: int) -> int:
    return next((n for n in range(at - 1, start - 1, -1) if tokens[n].mask in VALUES), start - 1)


def _last_version_word(text: str) -> Version | None:
    former = max((m.end() for m in phrases("former").finditer(text)), default=-1)
    current = max((m.end() for m in phrases("current").finditer(text)), default=-1)
    if former == current:
        return None
    return Version.FORMER if former > current else Version.CURRENT


def _first_version_word(text: str) -> Version | None:
    former = phrases("former").search(text)
    current = phrases("current").search(text)
    if former is None or current is None:
        return Version.FORMER if former else Version.CURRENT if current else None
    return Version.FORMER if former.start() < current.start() else Version.CURRENT
