"""Chooses facts that a person states of the world around them: their home, workplace, clubs and friendships.

For the ``Chooser``. Some D2 questions ask about them (``questions/metadata.py``). They follow from the world, so they
are not drawn from a catalogue of details, and a member of a club has no need to hear them first.
"""

from __future__ import annotations

from collections.abc import Callable

from memarena_masim.plan.facts import FactSource
from memarena_masim.plan.history import History
from memarena_masim.plan.state import Choice, Fact, Occasion
from memarena_masim.rng import Stream
from memarena_masim.world.model import Group, World

_KNOWN_TO_MEMBERS = frozenset(("group_membership", "group_place", "group_members"))
"""Facts of a group that no member needs to be told; a role may be new to them."""
_FRIENDS, _STRANGERS = (0, 1), -1
"""Layers of people (``Edge``) who are friends, and who do not know each other; of those between, no tie is stated."""


class CommunityTalk:
    """Chooses facts that a speaker knows without having heard them. Both methods return None if no draw fits."""

    def __init__(self, world: World, source: FactSource, history: History) -> None:
        self._world, self._source, self._history = world, source, history
        self._members = {group.name: frozenset(group.members) for group in world.groups}
        self._clubs: dict[str, list[Group]] = {}
        for group in world.groups:
            if group.kind == "club":
                for member in group.members:
                    self._clubs.setdefault(member, []).append(group)

    def community(self, occasion: Occasion) -> Choice | None:
        """Choose a fact about the speaker's home, workplace or one of their clubs that is new to the listeners."""
        for _ in range(8):
            fact = self._draw(occasion.stream, occasion.speaker)
            if fact.attribute in _KNOWN_TO_MEMBERS and not self._members[fact.item].isdisjoint(occasion.listeners):
                continue
            if occasion.fits(fact.theme_kind) and self._history.is_new(fact, occasion.hearers):
                return occasion.choice(fact)
        return None

    def tie(self, occasion: Occasion) -> Choice | None:
        """Choose whether the speaker and a person who is not present are friends."""
        for _ in range(8):
            other = occasion.stream.pick(self._world.people).agent_id
            if other in (occasion.speaker, *occasion.listeners):
                continue
            layer = self._world.edge(occasion.speaker, other).layer
            fact = self._source.tie(occasion.speaker, other, friends=layer in _FRIENDS)
            if layer in (*_FRIENDS, _STRANGERS) and self._history.is_new(fact, occasion.hearers):
                return occasion.choice(fact)
        return None

    def _draw(self, stream: Stream, speaker: str) -> Fact:
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
