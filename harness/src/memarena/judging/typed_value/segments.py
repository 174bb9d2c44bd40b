"""Cuts an answer's tokens into sentences and into segments that speak of one person or version; searches phrases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from memarena.judging.tables import toml_file
from memarena.judging.typed_value.masking import Mask, Token

TABLE = "claims.v1.toml"
VALUES = (Mask.VALUE, Mask.CHANGED, Mask.PREMISE, Mask.RIVAL)
"""Masks that are values."""
_SENTENCE = frozenset((".", "!", "?", "\n"))
"""Tokens that end a sentence."""
_CONCLUDES = frozenset(("so", "hence", "therefore", "thus"))
"""Words that begin a new segment after a comma."""
_ASIDES = frozenset(("though", "however"))
"""Words of contrast that may be between commas within a clause."""
_CUT = frozenset((";", "(", ")", "—", "while", "whereas", "but", "though", "although", "however", "yet", "→", "/"))
"""Words and signs of contrast, which end a segment."""


@cache
def phrases(section: str) -> re.Pattern[str]:
    """Return the phrases of a section of the table as one pattern over words joined by single spaces."""
    lines: Sequence[str] = toml_file(TABLE)[section]
    return re.compile("|".join(rf"(?<!\S)(?:{line})(?!\S)" for line in lines))


def joined(tokens: Sequence[Token]) -> tuple[str, list[int]]:
    """Return the words joined by single spaces, and the start of each."""
    starts, text = [], ""
    for token in tokens:
        starts.append(len(text))
        text += (token.mask.value if token.mask and token.mask is not Mask.ASKED else token.word) + " "
    return text, starts


def words_of(tokens: Sequence[Token], low: int, high: int) -> str:
    """Return the words of the tokens from ``low`` to ``high``, each followed by a space."""
    return joined(tokens[low:high])[0]


def sentence_of(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """Return start and end of the sentence around a token."""
    low = next((n + 1 for n in range(at - 1, -1, -1) if _ends_sentence(tokens, n)), 0)
    high = next((n for n in range(at, len(tokens)) if _ends_sentence(tokens, n)), len(tokens))
    return low, high


def _ends_sentence(tokens: Sequence[Token], n: int) -> bool:
    """Whether a token ends its sentence."""
    if tokens[n].word not in _SENTENCE:
        return False
    # "Dr." and "a.m." end no sentence.
    return (
        tokens[n].word != "."
        or n == 0
        or tokens[n - 1].word not in ("mr", "mrs", "ms", "dr", "prof", "st", "e", "g", "i")
    )


def segment_of(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """Return start and end of the segment around a token, which speaks of one person or version."""
    low, high = sentence_of(tokens, at)
    start = next((n + 1 for n in range(at - 1, low - 1, -1) if _cuts_segment(tokens, n)), low)
    end = next((n for n in range(at + 1, high) if _cuts_segment(tokens, n)), high)
    return start, end


def _is_aside(tokens: Sequence[Token], n: int) -> bool:
    """Whether a word of contrast is between commas within its clause: ``the climbing , though , is on VALUE``."""
    if not 0 < n < len(tokens) - 1 or tokens[n].word not in _ASIDES:
        return False
    return tokens[n - 1].word == "," and tokens[n + 1].word == ","


def _cuts_segment(tokens: Sequence[Token], n: int) -> bool:
    """Whether a segment ends at a token: a contrast, or a comma or ``and`` before another person or value."""
    word = tokens[n].word
    if any(_is_aside(tokens, at) for at in (n - 1, n, n + 1)):
        return False
    if word in _CUT:
        return word != "but" or not phrases("all_but").search(words_of(tokens, max(0, n - 2), n).rstrip())
    if word not in (",", "and"):
        return False
    ahead = tokens[n + 1 : n + 4]
    if word == "," and ahead and ahead[0].word in _CONCLUDES:
        return True
    # A comma or "and" cuts only after a value (up to twelve tokens back), before the next person or value.
    has_before = any(t.mask in VALUES for t in tokens[max(0, n - 12) : n])
    has_person = any(t.mask in (Mask.OTHER, Mask.ASKED) for t in ahead[:2])
    return has_before and (has_person or any(t.mask in VALUES for t in ahead) or word == ",")
