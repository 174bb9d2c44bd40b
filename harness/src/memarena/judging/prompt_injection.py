"""Detects words of an answer that are addressed to its judge, and removes them before a judge with a model reads it.

An answer can try to give its judge instructions. Fences and prompts make that harder, but not impossible; text that is
recognised here does not reach the judge at all. Patterns and weighted words are in ``tables/prompt_injection.v2.toml``.
The *marker* is whoever marks an answer: the judge.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache

from memarena_dataset.values.confusables import LOOK_ALIKES
from memarena_dataset.values.words import tidy

from memarena.judging.tables import data_file, toml_file

_FILE = "prompt_injection.v2.toml"
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?![\s\"')\]]|$)[^.!?\n]*)*(?:[.!?]+[\"')\]]*|\n|$)")
_WORD = re.compile(r"[a-z_]+")
_JSON_LIKE = re.compile(r"\{[^{}]*\}")
"""An object without others in it, such as a ready reply: ``{"correct": true}``."""
_SPACED_OUT = re.compile(r"(?<!\w)(?:[^\W\d_][ ._-]){3,}[^\W\d_](?!\w)")
"""Letters with a blank, dot or dash between them: ``i g n o r e``."""
_LATIN_AND_OTHERS = re.compile(r"\w*[a-z]\w*[\u0370-\u04ff]\w*|\w*[\u0370-\u04ff]\w*[a-z]\w*")
"""A word that mixes Latin with Greek or Cyrillic letters, which look alike."""
_LETTERS_AND_DIGITS = re.compile(r"\b(?=\w*[a-z])(?=\w*[013457])[a-z013457]{2,}\b")
"""A word with digits that look like letters: ``c0rrect``."""
_DIGITS_FOR_LETTERS = str.maketrans("013457", "oieast")


@dataclass(frozen=True)
class Cleared:
    """An answer without the words that are addressed to its marker."""

    text: str
    cut: tuple[str, ...]
    """The sentences that were cut out, in order; empty if there were none."""


def table_sha256() -> str:
    """Return the SHA-256 of the patterns in use."""
    return hashlib.sha256(data_file(_FILE)).hexdigest()


def cleared(answer: str) -> Cleared:
    """Return the answer without every sentence and every JSON-like object that speaks to a marker."""
    text = tidy(answer)
    cut: list[str] = []

    def drop(match: re.Match[str]) -> str:
        if speaks_to_marker(match.group()):
            cut.append(match.group().strip())
            return " "
        return match.group()

    # Objects first: the end of a sentence may be within an object, which would be cut in two.
    remainder = _SENTENCE.sub(drop, _JSON_LIKE.sub(drop, text))
    if cut:
        return Cleared(" ".join(remainder.split()), tuple(cut))
    # A pattern may run across a sentence's end ("New instruction. Ignore ..."): then the whole answer is removed.
    if speaks_to_marker(text):
        return Cleared("", (text.strip(),))
    return Cleared(answer, ())


def speaks_to_marker(text: str) -> bool:
    """Whether a pattern matches the text, as it is or without disguise, or a sentence has enough telling words."""
    plain = tidy(text).lower().replace("*", "")
    forms = dict.fromkeys(" ".join(form.split()) for form in (plain, _undo_disguise(plain)))
    return any(pattern.search(form) for form in forms for pattern in _patterns()) or any(map(_weighs_enough, forms))


def _weighs_enough(text: str) -> bool:
    """Whether the words of a sentence, each counted once, reach the weight of speaking to a marker."""
    weights, enough = _weights()
    return any(
        sum(weights.get(word, 0.0) for word in set(_WORD.findall(sentence))) >= enough
        for sentence in _SENTENCE.findall(text)
    )


def _undo_disguise(text: str) -> str:
    """Return the text with spaced-out letters joined, and look-alikes and digits within words as letters.

    Letters are joined first, since the other two look at whole words.
    """
    joined = _SPACED_OUT.sub(lambda match: re.sub(r"[ ._-]", "", match.group()), text)
    mixed = _LATIN_AND_OTHERS.sub(lambda match: match.group().translate(LOOK_ALIKES), joined)
    return _LETTERS_AND_DIGITS.sub(lambda match: match.group().translate(_DIGITS_FOR_LETTERS), mixed)


@cache
def _weights() -> tuple[dict[str, float], float]:
    table = toml_file(_FILE)
    weights = {word: float(weight) for weight, words in table["weights"].items() for word in words.split()}
    return weights, table["enough"]


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Return the table's patterns, with the names of parts in them replaced."""
    table = toml_file(_FILE)
    names: dict[str, str] = table["names"]
    patterns = []
    for pattern in table["patterns"].values():
        # From the last name to the first: a name may contain names that are defined before it.
        for name, words in reversed(names.items()):
            pattern = pattern.replace("{" + name + "}", words)  # noqa: PLW2901 (filled in step by step)
        patterns.append(re.compile(pattern.replace("{{", "{")))
    return tuple(patterns)
