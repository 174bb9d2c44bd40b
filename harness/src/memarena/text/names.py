"""Finds proper names: capitalised words that are not merely the first of a sentence."""

from __future__ import annotations

import re

from memarena.text.lexicon import word_list
from memarena.text.mentions import WEEKDAYS, ProperMention

_CAPITALISED = re.compile(
    r"(?<![\w'])[A-Z][\w'-]*(?:\s+(?:(?:de|van|von|der|den|la|del|al|bin|of the|of)\s+)?[A-Z][\w'-]*)*"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n]\s*|[\"(]\s*)$")
_NO_NAMES = """
mr mrs ms miss dr prof professor sir madam uncle aunt of the i'm i've i'd i'll
january february march april may june july august september october november december
"""
_NEVER = frozenset(_NO_NAMES.split()) | frozenset(WEEKDAYS)


def proper_names(text: str) -> list[ProperMention]:
    """Proper names in a tidied text. A capitalised first word counts only if it is no everyday word."""
    found = []
    for match in _CAPITALISED.finditer(text):
        pieces = [(w.start(), w.group()) for w in re.finditer(r"\S+", match.group())]
        if _SENTENCE_START.search(text[: match.start()]):
            while pieces and _is_everyday(pieces[0][1]):
                pieces = pieces[1:]
        name = tuple(w for w in (_bare(p) for _, p in pieces) if _can_be_name(w))
        if name:
            start = match.start() + pieces[0][0]
            found.append(ProperMention(start, match.end(), name))
    return found


def _bare(word: str) -> str:
    return word.lower().removesuffix("'s").strip("'-")


def _can_be_name(word: str) -> bool:
    return len(word) > 1 and word not in _NEVER


def _is_everyday(word: str) -> bool:
    bare = _bare(word)
    lists = ("function_words.v1.txt", "common_words.v1.txt", "talk_words.v1.txt")
    return any(bare in word_list(name) for name in lists) or "'" in bare
