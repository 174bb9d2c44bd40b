"""Which sessions an item counts for: what its text bears out, and a bounded number of claims where it rewrites."""

from __future__ import annotations

from dataclasses import dataclass

from memarena.log.projection import ProjectedItem

VERBATIM_SHARE = 0.5
"""Share of an item's words from turns and events, from which the item stores what was said and claims decide nothing.
"""
MOST_CLAIMED = 3
"""Sessions that an item which rewrites may name beyond what its text bears out."""
_WORDS_A_CLAIM = 4
"""Words that an item needs for each of them."""


@dataclass(frozen=True, slots=True)
class ItemSources:
    """The sessions of an item."""

    counted: frozenset[str]
    """For recall."""
    claims: int
    """Sessions that the backend names."""
    unsupported: int
    """Of these, not counted: neither borne out by the text nor within the bound of an item that rewrites."""
    rewritten: bool
    """It names sessions, and its text is not that of turns and events."""


def item_sources(item: ProjectedItem) -> ItemSources:
    """The sessions that an item counts for.

    A session counts where the item names it and its words bear it out; an item that names none counts for what its
    words bear out. Where the words are mostly the memory's own, a few more claims count, since nothing can check them.
    An item that was not audited counts for what it names.
    """
    claims = list(dict.fromkeys(item.session_ids))
    if item.held is None:
        return ItemSources(frozenset(claims), len(claims), 0, False)
    held = frozenset(item.held.session_ids)
    if not claims:
        return ItemSources(held, 0, 0, False)
    counted = [session for session in claims if session in held]
    rewritten = item.held.verbatim_share < VERBATIM_SHARE
    if rewritten:
        allowed = min(MOST_CLAIMED, -(-len(item.text.split()) // _WORDS_A_CLAIM))
        counted += [session for session in claims if session not in held][:allowed]
    return ItemSources(frozenset(counted), len(claims), len(claims) - len(counted), rewritten)
