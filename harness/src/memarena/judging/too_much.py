"""Whether an answer says so much that the value asked for is only somewhere in it: it is wrong, with code ``too_much``.

An answer field has a length. Beyond it, or where what was said is poured out turn by turn, nothing is answered,
whatever value it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MOST_WORDS = 300
"""Words of an answer field; a longer one is no answer to a question about one fact."""
_LONGEST_CHARACTERS = 4_000
"""Above this no words are counted: 300 words of twelve letters have fewer characters."""
_MOST_TURNS = 4
"""So many turns of talk, each told whole, are the evidence and no answer."""
_LEAST_TURN_WORDS = 8
"""A turn of fewer words may well be quoted by an answer that says more."""
_WORD = re.compile(r"\S+")
_SPOKEN_LINE = re.compile(
    r"^[^\S\n]*(?:[-*>\[(]\s*)?[A-Z][\w'’. -]{0,40}[)\]]?:[^\S\n]+\S+(?:[^\S\n]+\S+){7,}", re.MULTILINE
)
"""A line of a transcript: who speaks, a colon and at least eight words."""
_BLANKS = re.compile(r"\s+")
_LONG_BLANK = re.compile(r"\s{9,}")
_READ_CHARACTERS = 6_000


def is_too_much(answer: str, turns: Iterable[str] = ()) -> bool:
    """Whether an answer field is longer than an answer is, or is a transcript.

    Args:
        answer: as parsed: thinking and the field for a reason are not part of it.
        turns: what was said in the question's evidence, where it is at hand; turns told whole show a transcript that
            names no speakers.
    """
    if len(answer) > _LONGEST_CHARACTERS or sum(1 for _ in _WORD.finditer(answer)) > MOST_WORDS:
        return True
    if sum(1 for _ in _SPOKEN_LINE.finditer(answer)) >= _MOST_TURNS:
        return True
    plain_answer = _plain(answer)
    repeated = {
        plain
        for turn in turns
        if len((plain := _plain(turn)).split(" ")) >= _LEAST_TURN_WORDS and plain in plain_answer
    }
    return len(repeated) >= _MOST_TURNS


def beginning_and_end(text: str) -> str:
    """A text as far as it is read: what is longer than 6,000 characters loses its middle, at blanks.

    For options and for the label of a behaviour, which stand at the beginning or in the end; reading all of it takes
    time without bound.
    """
    if len(text) <= _READ_CHARACTERS:
        return text
    text = _LONG_BLANK.sub("\n", text)
    if len(text) <= _READ_CHARACTERS:
        return text
    half = _READ_CHARACTERS // 2
    return f"{text[:half].rpartition(' ')[0] or text[:half]}\n{text[-half:].partition(' ')[2] or text[-half:]}"


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    # Turns of the evidence come round with every answer.
    return _BLANKS.sub(" ", text).strip().casefold()
