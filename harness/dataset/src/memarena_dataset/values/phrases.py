"""Normalizes the words of a text, and tests whether a phrase occurs in it word by word.

The checks and the simulator use it. It is stricter than ``terms``, which also accepts a typo or another quantity word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memarena_dataset.values.types import NameValue, PlaceValue, TermValue

_TOKEN = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"(?<=\w)'s\b")
_ACCENT = re.compile("[\u0300-\u036f]")
_ARTICLES = ("the", "a", "an", "my", "his", "her", "their", "our")


def tokens_of(text: str) -> list[str]:
    """Return the words of a text without case, accents, apostrophes and punctuation."""
    plain = text.casefold()
    if not plain.isascii():
        plain = _ACCENT.sub("", unicodedata.normalize("NFKD", plain)).replace("’", "'")
    return _TOKEN.findall(_POSSESSIVE.sub("", plain).replace("'", ""))


def normal(text: str) -> str:
    """Return the tokens joined by single blanks, with one at each end, so that ``in`` matches whole words."""
    return f" {' '.join(tokens_of(text))} "


def phrase_occurs(phrase: str, normal_text: str) -> bool:
    """Whether the words of ``phrase``, without a leading article, are in a text from ``normal``."""
    needle = _needle(phrase)
    return bool(needle) and needle in normal_text


def spellings(value: NameValue | PlaceValue | TermValue) -> tuple[str, ...]:
    """Return the forms of a name, a place or a term; a name also has its first word as a form."""
    shown = value.text if isinstance(value, TermValue) else value.name
    first = tuple(shown.split()[:1]) if isinstance(value, NameValue) else ()
    return (shown, *first, *value.aliases)


@lru_cache(maxsize=4096)
def _needle(phrase: str) -> str:
    words = tokens_of(phrase)
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return f" {' '.join(words)} " if words else ""
