"""Splits text into words and sentences, the same way for all measures."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[A-Za-z0-9']+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case: letters, digits and apostrophes."""
    return [word.lower() for word in _WORDS.findall(text)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a turn. An abbreviated title (``Dr.``) does not end a sentence."""
    parts: list[str] = []
    for part in _SENTENCE_END.split(text):
        if parts and re.search(r"\b(?:Dr|Mr|Mrs|Ms|St|Prof)\.$", parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts
