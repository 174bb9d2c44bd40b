"""Token-F1 of an answer and the gold's text: a figure to compare with published ones, which decides nothing."""

from __future__ import annotations

from memarena_dataset.values.words import token_f1


def best_token_f1(texts: tuple[str, ...], answer: str) -> float | None:
    """Token-F1 with the most similar gold text; None without one."""
    return max((token_f1(answer, text) for text in texts), default=None)
