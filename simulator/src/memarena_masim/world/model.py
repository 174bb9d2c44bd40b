"""Defines the records of a world: people, places, groups, the social graph, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Person:
    """A person. Hours are on a 24-hour clock; ``sleep`` is after ``wake`` and at most 24."""

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
    """Weekdays without work; 0 is Monday."""
    topics: tuple[str, ...]
    """Topics that this person likes to bring up."""
    leaning: int
    """A number that decides which branch of a phrase's choices this person prefers (``phrases/grammar.py``)."""
    pace: float
    """Scale of the length of turns, 1 on average; like ``fillers`` and ``asking``, it depends on style and traits."""
    fillers: float
    """Share of sentences with a filler."""
    asking: float
    """Scale of the share of turns that end with a question, 1 on average."""

    @property
    def first_name(self) -> str:
        """Return the first name."""
        return self.name.split(" ", 1)[0]

    @property
    def assistant_id(self) -> str:
        """Return the agent id of the person's assistant."""
        return f"assistant_{self.agent_id}"


@dataclass(frozen=True, slots=True)
class Place:
    """A place. ``privacy`` is ``public``, ``semi`` or ``private``; ``opens`` and ``closes`` are hours."""

    location_id: str
    name: str
    kind: str
    opens: float
    closes: float
    privacy: str


GROUP_KINDS = ("family", "team", "club")


@dataclass(frozen=True, slots=True)
class Group:
    """A group of one of GROUP_KINDS. ``meets`` is (weekday, hour), or None if its members meet daily."""

    group_id: str
    name: str
    kind: str
    members: tuple[str, ...]
    roles: tuple[tuple[str, str], ...]
    place_id: str
    meets: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Edge:
    """The closeness of two people. ``layer`` counts from 0, the closest; -1 is outside of all layers."""

    source: str
    target: str
    weight: float
    layer: int


@dataclass(frozen=True, slots=True)
class WorldEvent:
    """An event, with the ids of the agents who could see it in ``mask``. ``time`` is in simulated days."""

    event_id: str
    time: float
    category: str
    content: str
    mask: tuple[str, ...]
    location_id: str | None = None
    event_type: str = ""
    """Kind of the event: a notice, a meeting, a repair …"""
    group_id: str | None = None
    said: str = ""
    """Its wording in talk: ``content`` without names of place and group, with ``$a`` and ``$b`` unfilled; asterisks
    enclose the words that an answer can take up."""
    cast: tuple[str, ...] = ()
    """Agent ids of ``$a`` and ``$b``; empty if the event has no actors."""


@dataclass(frozen=True)
class World:
    """The state of a world before its first day."""

    people: tuple[Person, ...]
    places: dict[str, Place]
    groups: tuple[Group, ...]
    edges: dict[tuple[str, str], Edge]
    """One edge for every pair, by (smaller id, larger id)."""

    @cached_property
    def _by_id(self) -> Mapping[str, Person]:
        return {person.agent_id: person for person in self.people}

    def person(self, agent_id: str) -> Person:
        """Return a person by id. KeyError if there is none."""
        return self._by_id[agent_id]

    def edge(self, agent: str, other: str) -> Edge:
        """Return the edge of a pair."""
        return self.edges[(agent, other) if agent < other else (other, agent)]
