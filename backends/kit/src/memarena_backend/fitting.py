"""Fits ranked items into the bounds of a search: counts their tokens, drops the last, and cuts the first if it must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memarena_backend.checks import utf8_bytes
from memarena_backend.records import Item, Notice, SearchResult


def tokens_by_bytes(text: str) -> int:
    """Return the tokens of a text as the contract counts them: UTF-8 bytes divided by 4, rounded up."""
    return -(-utf8_bytes(text) // 4)


def fit_ranked(items: Sequence[Item], max_items: int | None, max_context_tokens: int | None) -> SearchResult:
    """Return the ranked items without the last ones that do not fit both bounds (None: no bound).

    If the first item alone is too long, its end is cut off, and a notice says so: half of the best match is worth more
    than no item.
    """
    ranked = items if max_items is None else items[:max_items]
    truncated = len(ranked) < len(items)
    if max_context_tokens is None:
        return SearchResult(ranked, truncated=truncated)
    total = 0
    for position, item in enumerate(ranked):
        total += tokens_by_bytes(item.text)
        if total > max_context_tokens:
            if position > 0:
                return SearchResult(ranked[:position], truncated=True)
            return _only_cut(item, max_context_tokens)
    return SearchResult(ranked, truncated=truncated)


def _only_cut(item: Item, max_context_tokens: int) -> SearchResult:
    text = cut_text(item.text, max_context_tokens)
    if not text:
        left_out = Notice("item_left_out", "the best item does not fit max_context_tokens")
        return SearchResult((), (left_out,), truncated=True)
    cut = Notice("item_cut", "the best item was cut to fit max_context_tokens")
    return SearchResult((replace(item, text=text),), (cut,), truncated=True)


def cut_text(text: str, max_tokens: int) -> str:
    """Return the longest start of a text within ``max_tokens``, cut at white space if there is any before the limit.

    Empty if not even one character fits.
    """
    data = text.encode()
    limit = max_tokens * 4
    if len(data) <= limit:
        return text
    head = data[:limit].decode(errors="ignore")
    at_word = max(head.rfind(space) for space in " \n\t")
    if not text[len(head)].isspace() and at_word > 0:
        head = head[:at_word]
    return head.rstrip()
