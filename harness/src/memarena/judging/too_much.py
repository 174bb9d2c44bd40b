"""Decides whether an answer says so much that the value is merely somewhere in it: it is wrong, code ``too_much``.

An answer field has a maximum length. An answer that is longer, or that repeats the evidence turn by turn, answers
nothing, whatever value it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MOST_WORDS = 300
"""Most words of an answer field; a longer text is not an answer to a question about one fact."""
_MAX_CHARACTERS = 4_000
"""Longest answer, in characters, whose words are counted: 300 words of twelve letters have fewer characters."""
_MAX_TURNS = 4
"""Whole turns of talk from which on an answer repeats the evidence instead of answering."""
_MIN_TURN_WORDS = 8
"""Least words of such a turn; a shorter one may be quoted by a proper answer."""
_WORD = re.compile(r"\S+")
_SPOKEN_LINE = re.compile(
    r"^[^\S\n]*(?:[-*>\[(]\s*)?[A-Z][\w'’. -]{0,40}[)\]]?:[^\S\n]+\S+(?:[^\S\n]+\S+){7,}", re.MULTILINE
)
"""A line of a transcript: who speaks, a colon and at least eight words."""
_BLANKS = re.compile(r"\s+")
_LONG_BLANK = re.compile(r"\s{9,}")
_READ_CHARACTERS = 6_000
"""Most characters of a text of which :func:`beginning_and_end` leaves out nothing."""


def is_too_much(answer: str, turns: Iterable[str] = ()) -> bool:
    """Whether an answer field is longer than an answer may be, or is a transcript.

    Args:
        answer: as parsed: thinking and the field for a reason are not part of it.
        turns: texts of the turns of the question's evidence, if available; turns that the answer repeats whole show a
            transcript that names no speakers.
    """
    if len(answer) > _MAX_CHARACTERS or sum(1 for _ in _WORD.finditer(answer)) > MOST_WORDS:
        return True
    if sum(1 for _ in _SPOKEN_LINE.finditer(answer)) >= _MAX_TURNS:
        return True
    plain_answer = _plain(answer)
    repeated = {
        plain for turn in turns if len((plain := _plain(turn)).split(" ")) >= _MIN_TURN_WORDS and plain in plain_answer
    }
    return len(repeated) >= _MAX_TURNS


def beginning_and_end(text: str) -> str:
    """Return the part of a text that is read: of more than 6,000 characters the middle is cut out, at blanks.

    For options and for the label of a behaviour, which are at the beginning or at the end; reading all of a text takes
    time without bound.
    """
    if len(text) <= _READ_CHARACTERS:
        return text
    text = _LONG_BLANK.sub("\n", text)
    if len(text) <= _READ_CHARACTERS:
        return text
    # Half words at the cut are dropped.
    half = _READ_CHARACTERS // 2
    return f"{text[:half].rpartition(' ')[0] or text[:half]}\n{text[-half:].partition(' ')[2] or text[-half:]}"


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    # Cached: each answer is compared with the same turns of evidence.
    return _BLANKS.sub(" ", text).strip().casefold()
