"""Records of a world: people, places, groups, social graph, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Person:
    """A person. Hours are on a 24-hour clock; ``sleep`` after ``wake``, at most 24."""

    agent_id: str
    name: str
    age: int
    occupation: str
    traits: tuple[str, ...]
    style: str
    values: tuple[str, ...]
    concerns: tuple[str, ...]
    hobbies: tuple[str, ...]
    home_id: str
    work_id: str
    wake: float
    sleep: float
    work_start: float
    work_end: float
    days_off: tuple[int, ...]
    """Weekdays without work, Monday is 0."""
    topics: tuple[str, ...]
    """Topics that this person likes to bring up."""
    leaning: int
    pace: float
    """Scale of the length of turns, 1 on average; like ``fillers`` and ``asking`` it comes from style and traits."""
    fillers: float
    """Share of sentences with a filler."""
    asking: float
    """Scale of the share of turns that end with a question, 1 on average."""

    @property
    def first_name(self) -> str:
        """The name that others use in talk."""
        return self.name.split(" ", 1)[0]

    @property
    def assistant_id(self) -> str:
        """Agent id of the person's assistant."""
        return f"assistant_{self.agent_id}"


@dataclass(frozen=True, slots=True)
class Place:
    """A place. ``privacy`` is public, semi or private."""

    location_id: str
    name: str
    kind: str
    opens: float
    closes: float
    privacy: str


GROUP_KINDS = ("family", "team", "club")


@dataclass(frozen=True, slots=True)
class Group:
    """One of :data:`GROUP_KINDS`. ``meets`` is (weekday, hour), or None where members see each other daily."""

    group_id: str
    name: str
    kind: str
    members: tuple[str, ...]
    roles: tuple[tuple[str, str], ...]
    place_id: str
    meets: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Edge:
    """How close two people are. ``layer`` counts from 0, the closest; -1 outside of all layers."""

    source: str
    target: str
    weight: float
    layer: int


@dataclass(frozen=True, slots=True)
class WorldEvent:
    """Something that happened, with the agents who could see it, fixed when it was broadcast."""

    event_id: str
    time: float
    category: str
    content: str
    mask: tuple[str, ...]
    location_id: str | None = None
    event_type: str = ""
    """What sort of event it is: a notice, a meeting, a repair …"""
    group_id: str | None = None
    said: str = ""
    """How people say it: ``content`` without place and group by name, ``$a`` and ``$b`` unfilled, what can be taken up
    between asterisks."""
    cast: tuple[str, ...] = ()
    """Who ``$a`` and ``$b`` are; nobody if it is no deed of anybody's."""


@dataclass(frozen=True)
class World:
    """Everything that holds before the first day."""

    people: tuple[Person, ...]
    places: dict[str, Place]
    groups: tuple[Group, ...]
    edges: dict[tuple[str, str], Edge]
    """One for every pair, under (smaller id, larger id)."""

    @cached_property
    def _by_id(self) -> Mapping[str, Person]:
        return {person.agent_id: person for person in self.people}

    def person(self, agent_id: str) -> Person:
        """A person by id. KeyError if there is none."""
        return self._by_id[agent_id]

    def edge(self, agent: str, other: str) -> Edge:
        """The edge of a pair."""
        return self.edges[(agent, other) if agent < other else (other, agent)]
