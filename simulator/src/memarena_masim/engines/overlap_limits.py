"""How much of its evidence a question may repeat: the limits that ``memarena dataset validate`` checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memarena_dataset.checks.overlap import MAX_CONTAINMENT, MAX_JACCARD, function_words
from memarena_dataset.values.phrases import tokens_of


@dataclass(frozen=True, slots=True)
class Limits:
    """What a rewording is held against: the evidence's texts and the words that do not count."""

    said: tuple[tuple[str, ...], ...]
    names: frozenset[str]

    @classmethod
    def of(cls, texts: Sequence[str], names: frozenset[str]) -> Limits:
        """From the texts of the evidence turns."""
        return cls(tuple(tuple(content_words(text, names)) for text in texts), names)

    def fault(self, text: str) -> str | None:
        """Which limit a question breaks: ``containment``, ``jaccard``, ``trigram``, or None."""
        asked = content_words(text, self.names)
        own, evidence = set(asked), {word for turn in self.said for word in turn}
        common = own & evidence
        if own and len(common) / len(own) > MAX_CONTAINMENT:
            return "containment"
        if own and len(common) / len(own | evidence) >= MAX_JACCARD:
            return "jaccard"
        if _trigrams(asked) & {trigram for turn in self.said for trigram in _trigrams(turn)}:
            return "trigram"
        return None


def content_words(text: str, names: frozenset[str]) -> list[str]:
    """Words of a text that count: neither function words nor parts of a name."""
    return [word for word in tokens_of(text) if word not in function_words() and word not in names]


def _trigrams(words: Sequence[str]) -> set[tuple[str, str, str]]:
    return set(zip(words, words[1:], words[2:], strict=False))
