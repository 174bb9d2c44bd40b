"""Draws the facts about homes, workplaces and clubs that a person states about themselves.

Some D2 questions ask about them (``questions/metadata.py``). They follow from the world, so they are not drawn from a
catalogue of details, and a member of a club has no need to hear them first.
"""

from __future__ import annotations

from collections.abc import Callable

from memarena_masim.plan.facts import FactSource
from memarena_masim.plan.state import Fact
from memarena_masim.rng import Stream
from memarena_masim.world.model import Group, World


class CommunityTalk:
    """Draws facts that a speaker knows without having heard them from anyone: their home, workplace and clubs."""

    def __init__(self, world: World, source: FactSource) -> None:
        self._world, self._source = world, source
        self._clubs: dict[str, list[Group]] = {}
        for group in world.groups:
            if group.kind == "club":
                for member in group.members:
                    self._clubs.setdefault(member, []).append(group)

    def draw(self, stream: Stream, speaker: str) -> Fact:
        """Draw a fact about the speaker's home, workplace or one of their clubs."""
        clubs = self._clubs.get(speaker)
        # each draw moves the stream, so their order is part of what a seed gives
        if not clubs or stream.chance(0.3):
            return (self._source.home if stream.chance(0.5) else self._source.work)(self._world, speaker)
        group = stream.pick(clubs)
        kinds: tuple[Callable[[], Fact], ...] = (
            lambda: self._source.membership(group, speaker),
            lambda: self._source.role(group, speaker),
            lambda: self._source.group_place(self._world, group),
            lambda: self._source.group_members(self._world, group),
        )
        return stream.pick(kinds)()
