"""Which sessions an item counts for: what its text bears out, and a bounded number of claims where it rewrites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memarena_dataset.model import Instance

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
    in_text = frozenset(item.held.session_ids)
    if not claims:
        return ItemSources(in_text, 0, 0, False)
    accepted = [session for session in claims if session in in_text]
    rewritten = item.held.verbatim_share < VERBATIM_SHARE
    if rewritten:
        most = min(MOST_CLAIMED, -(-len(item.text.split()) // _WORDS_A_CLAIM))
        accepted += [session for session in claims if session not in in_text][:most]
    return ItemSources(frozenset(accepted), len(claims), len(claims) - len(accepted), rewritten)


def suffices(
    instance: Instance, prompt: Sequence[tuple[ProjectedItem, ItemSources]], session_of: Mapping[str, str]
) -> bool | None:
    """Whether the items of a prompt hold turns that suffice for the gold.

    Any turn of each of the instance's groups will do (:attr:`Instance.needed_turns`); where the data set names no
    turns, every evidence session is needed. What an item holds is read off its text; an item that rewrites, or that
    was not audited, counts for the turns that it names, and for the sessions that it counts for where it names no turn.

    Returns:
        None where nothing has to be retrieved, and where items say nothing about where they come from.
    """
    groups: tuple[tuple[str, ...], ...] = instance.needed_turns
    if not instance.gold.answerable or not (groups or instance.evidence_session_ids):
        return None
    if any(item.held is None and not item.session_ids for item, _ in prompt):
        return None
    if not groups:
        sessions = {session for _, source in prompt for session in source.counted}
        return sessions.issuperset(instance.evidence_session_ids)
    needed = frozenset(turn_id for group in groups for turn_id in group)
    held_turns = {turn_id for item, source in prompt for turn_id in _turns(item, source, needed, session_of)}
    return all(not held_turns.isdisjoint(group) for group in groups)


def _turns(
    item: ProjectedItem, source: ItemSources, needed: frozenset[str], session_of: Mapping[str, str]
) -> Iterator[str]:
    """Of the turns needed, those that an item counts for."""
    if item.held is not None:
        yield from needed.intersection(item.held.turn_ids)
    if item.held is None or source.rewritten:
        turn_ids = needed.intersection(item.turn_ids) if item.turn_ids else needed
        yield from (turn_id for turn_id in turn_ids if session_of.get(turn_id) in source.counted)
