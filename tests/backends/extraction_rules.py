"""Extracts memories from turns by rules, in place of the language model with which Mem0, MemOS and others extract.

Tests and timings need an extractor that is the same every time and costs nothing. ``named`` keeps statements of the
form ``My … is (called) …``. ``sentences`` keeps every sentence with a number, or with a name that is not its first
word, so that a store grows as it would with a model. What a memory scores with either says nothing of its quality.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Keep = Literal["named", "sentences"]

_NAMED = re.compile(r"\bmy ([\w' ]{1,40}?) is (?:called |named )?([^.!?;\[\]\n]+)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_AROUND = ".,;:!?…-–—()[]\"'“”‘’"
_APOSTROPHE = re.compile("['’]")


@dataclass(frozen=True, slots=True)
class Memory:
    """What an extractor keeps. ``name`` is the name or the number in it."""

    speaker: str
    name: str
    text: str


def memories_of(speaker: str, text: str, keep: Keep = "named") -> list[Memory]:
    """The memories in a speaker's text, in its order."""
    return _KEPT[keep](speaker, text)


def statements(transcript: str, opening: re.Pattern[str]) -> list[tuple[re.Match[str], str]]:
    """The statements of a transcript, each as the match of its opening and the text up to the next opening."""
    matches = list(opening.finditer(transcript))
    ends = [*(each.start() for each in matches[1:]), len(transcript)]
    return [(each, transcript[each.end() : end].strip()) for each, end in zip(matches, ends, strict=False)]


def _named(speaker: str, text: str) -> list[Memory]:
    facts = [(what.strip().lower(), name.strip()) for what, name in _NAMED.findall(text)]
    return [Memory(speaker, name, f"The {what} of {speaker} is called {name}") for what, name in facts]


def _sentences(speaker: str, text: str) -> list[Memory]:
    pairs = [(_telling(sentence), sentence) for sentence in map(str.strip, _SENTENCE_END.split(text))]
    return [Memory(speaker, name, f"{speaker} said: {sentence}") for name, sentence in pairs if name]


def _telling(sentence: str) -> str:
    """The first number of a sentence, or name that is not its first word; empty if there is none."""
    for index, word in enumerate(sentence.split()):
        bare = word.strip(_AROUND)
        begins = _APOSTROPHE.split(bare)[0]
        if any(letter.isdigit() for letter in bare) or (index and begins[:1].isupper() and begins != "I"):
            return begins
    return ""


_KEPT: dict[Keep, Callable[[str, str], list[Memory]]] = {"named": _named, "sentences": _sentences}
