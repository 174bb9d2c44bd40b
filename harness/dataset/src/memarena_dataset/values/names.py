"""Finds proper names: capitalised words that are not merely the first of a sentence.

The value judge needs them to detect another name next to, or in place of, the right name.
"""

from __future__ import annotations

import re
from functools import cache

from memarena_dataset.values.calendar import MONTHS, WEEKDAYS
from memarena_dataset.values.mentions import ProperMention
from memarena_dataset.values.word_lists import word_list
from memarena_dataset.values.words import stem

_CAPITALISED = re.compile(
    r"(?<![\w'])[A-Z][\w'-]*(?:[^\S\n]+(?:(?:de|van|von|der|den|la|del|al|bin|of the|of)[^\S\n]+)?[A-Z][\w'-]*)*"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n]\s*|[\"(]\s*)$")
_OPENS_A_PHRASE = re.compile(
    r"[A-Z][a-z]{2,}(?:ed|ing)\s+(?:on|upon|by|from|in|into|through|over|with|at|to|for|back|all|everything|what|that|"
    r"both|the|this|these|those|my|your|our|his|her|their|a|an|you|it)\b"
    r"|[A-Z][a-z]{2,}(?:er|est)\s+(?:answer|version|account|story|form|part|note|remark|talk|session|conversation)s?\b"
)
"""A participle with its complement (``Judging by …``), or a comparative before a word for speech (``Longer
version``): such words rarely follow a person's name."""
_NO_NAMES = """
mr mrs ms miss dr prof professor sir madam uncle aunt of the i'm i've i'd i'll
"""
# Titles, months and weekdays have a capital letter in English, but are no names.
_NEVER = frozenset((*_NO_NAMES.split(), *MONTHS, *WEEKDAYS))


def proper_names(text: str) -> list[ProperMention]:
    """Return the proper names in a tidied text. A capitalised first word counts only if it is not an everyday word."""
    names = []
    for match in _CAPITALISED.finditer(text):
        pieces = [(w.start(), w.group()) for w in re.finditer(r"\S+", match.group())]
        if _SENTENCE_START.search(text[: match.start()]):
            opens = len(pieces) == 1 and _OPENS_A_PHRASE.match(text, match.start())
            while pieces and (opens or _is_everyday(pieces[0][1])):
                pieces = pieces[1:]
        name = tuple(w for w in (_bare(p) for _, p in pieces) if _can_be_name(w))
        if name:
            start = match.start() + pieces[0][0]
            names.append(ProperMention(start, match.end(), name))
    return names


def _bare(word: str) -> str:
    return word.lower().removesuffix("'s").strip("'-")


def _can_be_name(word: str) -> bool:
    return len(word) > 1 and word not in _NEVER


def _is_everyday(word: str) -> bool:
    bare = _bare(word)
    return "'" in bare or bare in _everyday() or (bare.endswith(("ed", "ing", "s")) and stem(bare) in _everyday_stems())


@cache
def _everyday() -> frozenset[str]:
    lists = ("function_words.v1.txt", "common_words.v1.txt", "talk_words.v1.txt")
    return frozenset[str]().union(*map(word_list, lists))


@cache
def _everyday_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in _everyday())
