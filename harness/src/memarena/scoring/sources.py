"""Determines for which sessions an item counts, and whether a prompt's items suffice for the gold.

A session counts if the item's text supports it. An item that *rewrites*, whose text is mostly not that of turns and
events, may also count for a few sessions that it claims (names by id), since no check of its text is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memarena_dataset.model import Instance

from memarena.log.projection import ProjectedItem

VERBATIM_SHARE = 0.5
"""Threshold of the share of an item's words that are from turns and events; below it the item rewrites."""
MOST_CLAIMED = 3
"""Claims without support by its text that count for an item that rewrites, at most."""
_WORDS_A_CLAIM = 4
"""Words of text that an item needs for each of these claims."""


@dataclass(frozen=True, slots=True)
class ItemSources:
    """Sessions of an item: those that count, and how many are claimed."""

    counted: frozenset[str]
    """Ids of the sessions that count for recall."""
    claims: int
    """How many sessions the backend names."""
    unsupported: int
    """Claims that do not count: the text does not support them, nor are they within the bound of a rewriting item."""
    rewritten: bool
    """Whether it names sessions, and its text is mostly not that of turns and events."""


def item_sources(item: ProjectedItem) -> ItemSources:
    """Determine the sessions that an item counts for.

    A session counts if the item names it and its text supports it. An item that names none counts for all sessions that
    its text supports. If it rewrites, a few more claims count, since nothing can check them. An item that was not
    audited counts for all sessions that it names.
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

    One turn of each of the instance's groups is enough (:attr:`Instance.needed_turns`); if the data set names no turns,
    every evidence session is needed. Which turns an item holds follows from its text. An item that rewrites, or was not
    audited, counts for the turns that it names; if it names none, for all needed turns of its counted sessions.

    Args:
        instance: the question with its gold.
        prompt: the items of the prompt, each with its sessions.
        session_of: session id by turn id.

    Returns:
        None if nothing has to be retrieved, or the source of an item is unknown.
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
    """Yield the ids of the needed turns that an item counts for, some twice."""
    if item.held is not None:
        yield from needed.intersection(item.held.turn_ids)
    if item.held is None or source.rewritten:
        turn_ids = needed.intersection(item.turn_ids) if item.turn_ids else needed
        yield from (turn_id for turn_id in turn_ids if session_of.get(turn_id) in source.counted)
