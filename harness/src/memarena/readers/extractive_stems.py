"""Words without their endings, for matching, for the extractive reader."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files

STOPWORD_FILE = "lexicons/stopwords.v1.txt"
IRREGULAR_FILE = "lexicons/irregular.v1.txt"
"""One word per line, its other forms after it."""

WORD = re.compile(r"[^\W_]+")


def _data(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


@cache
def _stopwords() -> frozenset[str]:
    return frozenset(_data(STOPWORD_FILE).decode().split())


@cache
def _irregular() -> dict[str, str]:
    lines = [line.split() for line in _data(IRREGULAR_FILE).decode().splitlines()]
    return {form: base for base, *forms in lines for form in forms}


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """A word without its commonest English endings, empty for a stop word. Made for matching, not for reading."""
    word = word.lower()
    if word in _stopwords():
        return ""
    word = _irregular().get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif re.search(r"(?:s|x|z|ch|sh)es$", word):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and re.search(r"[aeiouy]", base):
            word = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word.removesuffix("e") if len(word) > 3 else word


def content_words(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(filter(None, map(stem, WORD.findall(text))))
