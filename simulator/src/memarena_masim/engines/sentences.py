"""Splits a turn into sentences, and inserts one."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?…])[\"”’')]*\s+(?=[\"“‘'(]*[A-Z0-9])")
_ABBREVIATIONS = ("Dr.", "Mr.", "Ms.", "Mrs.", "St.", "a.m.", "p.m.")


def split(text: str) -> list[str]:
    """Return the sentences of a text, in order; joined by spaces, they are the text with its white space normalised."""
    parts: list[str] = []
    for piece in _END.split(" ".join(text.split())):
        # without a.m. and p.m., which may end a sentence
        if parts and parts[-1].endswith(_ABBREVIATIONS[:5]):
            parts[-1] = f"{parts[-1]} {piece}"
        elif piece:
            parts.append(piece)
    return parts


def insert(text: str, sentences: tuple[str, ...]) -> str:
    """Return ``text`` with sentences inserted in its middle, between two of its sentences."""
    text_sentences = split(text)
    middle = (len(text_sentences) + 1) // 2
    return " ".join((*text_sentences[:middle], *sentences, *text_sentences[middle:]))
