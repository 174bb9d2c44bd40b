"""Computes the token-F1 of an answer and the gold's text, to compare with published figures; it decides nothing."""

from __future__ import annotations

from memarena_dataset.values.words import token_f1


def best_token_f1(texts: tuple[str, ...], answer: str) -> float | None:
    """Return the token-F1 with the most similar gold text; None without a gold text."""
    return max((token_f1(answer, text) for text in texts), default=None)
