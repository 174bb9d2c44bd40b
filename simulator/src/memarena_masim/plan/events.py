"""Draws the events of a day, with the people who can see each, and words them for talk."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from memarena_masim.config import WorldConfig
from memarena_masim.errors import MasimError
from memarena_masim.pack import PackHalf
from memarena_masim.phrases.library import folder_of
from memarena_masim.plan.facts import opaque
from memarena_masim.plan.model import EventTalk
from memarena_masim.rng import Stream
from memarena_masim.toml_text import parsed
from memarena_masim.world.model import GROUP_KINDS, Group, World, WorldEvent

EVENTS_PER_AGENT_DAY = 0.1
"""As in the released data set: 75 events for 50 agents over 15 days."""
_CAST = ("$a", "$b")
"""Slots of a line for the people of an event, in the order of its cast."""
CATEGORIES = (("global", 0.15), ("community", 0.40), ("dyadic", 0.27), ("private", 0.18))
"""Categories by who can see an event, with their shares: all people, a group, two people, one person."""


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event. ``weight`` is its relative frequency within its category; ``lines`` are its wordings."""

    category: str
    name: str
    weight: float
    lines: tuple[str, ...]
    groups: tuple[str, ...] = ()
    """Kinds of groups that it can happen to; empty: all."""


@cache
def event_kinds(pack: PackHalf) -> dict[str, tuple[EventKind, ...]]:
    """Read the kinds of events, by category. MasimError names the section that is not valid."""
    try:
        sections = parsed((folder_of(pack) / "facts" / "events.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"facts/events.toml: {error}") from error
    kinds: dict[str, tuple[EventKind, ...]] = {}
    for category, _ in CATEGORIES:
        rows = sections.get(category, {})
        for name, row in rows.items():
            if not row.get("lines") or row.get("weight", 0) <= 0:
                raise MasimError(f"facts/events.toml: {category}.{name}: lines and a weight above 0 are expected")
            unknown = set(row.get("groups", ())) - set(GROUP_KINDS)
            if unknown:
                known = ", ".join(GROUP_KINDS)
                raise MasimError(
                    f"facts/events.toml: {category}.{name}.groups: {min(unknown)!r}; one of {known} is expected"
                )
        kinds[category] = tuple(
            EventKind(category, name, row["weight"], tuple(row["lines"]), tuple(row.get("groups", ())))
            for name, row in rows.items()
        )
        if not kinds[category]:
            raise MasimError(f"facts/events.toml: no section [{category}.…]")
    for group in GROUP_KINDS:
        if not any(not kind.groups or group in kind.groups for kind in kinds["community"]):
            raise MasimError(f"facts/events.toml: no section [community.…] for groups of the kind {group!r}")
    return kinds


def plan_events(config: WorldConfig, world: World, day: int) -> list[WorldEvent]:
    """Draw the events of a day, sorted by time. At least one is global or a group's: something to talk about."""
    stream = Stream(config.key, "events", day)
    count = max(2, round(config.agents * EVENTS_PER_AGENT_DAY))
    events = []
    for number in range(count):
        drawn = CATEGORIES[:2] if number == 0 else CATEGORIES
        category = stream.weighted([name for name, _ in drawn], [share for _, share in drawn])
        events.append(_event(config, world, day, number, category, stream))
    return sorted(events, key=lambda event: (event.time, event.event_id))


def _event(config: WorldConfig, world: World, day: int, number: int, category: str, stream: Stream) -> WorldEvent:
    """Draw an event of a category: who can see it, its kind and its line."""
    ids = [person.agent_id for person in world.people]
    group: Group | None = None
    if category == "community" and world.groups:
        group = stream.pick(world.groups)
        mask = group.members
    elif category == "dyadic":
        agent = stream.pick(ids)
        near = [other for other in ids if other != agent and world.edge(agent, other).layer >= 0] or ids
        mask = (agent, stream.pick([other for other in near if other != agent]))
    elif category == "private":
        mask = (stream.pick(ids),)
    else:
        category, mask = "global", tuple(ids)
    category_kinds = event_kinds(config.words)[category]
    kinds = [kind for kind in category_kinds if group is None or not kind.groups or group.kind in kind.groups]
    kind = stream.weighted(kinds, [kind.weight for kind in kinds])
    spoken = content = stream.pick(kind.lines)
    cast: tuple[str, ...] = ()
    if group is not None:
        location = world.places[group.place_id].name
        content = content.replace("$group", group.name).replace("$place", location)
        spoken = _without_names(spoken, group)
    elif category != "global":
        cast = mask
        content = _filled(content, {slot: world.person(agent).name for slot, agent in zip(_CAST, cast, strict=False)})
    return WorldEvent(
        event_id=opaque("event", config.key, day, number),
        # from 6:00 to 8:24, so that people can talk of it on the same day
        time=round(day + 0.25 + 0.1 * stream.unit(), 5),
        category=category,
        content=f"{content.replace('*', '')}.",
        mask=tuple(sorted(mask)),
        location_id=group.place_id if group else None,
        event_type=kind.name,
        group_id=group.group_id if group else None,
        said=spoken,
        cast=cast,
    )


def talk_of(event: WorldEvent, speakers: Sequence[str], names: Mapping[str, str]) -> EventTalk:
    """Return how ``speakers`` speak of an event: agent ids, who all could see it. ``names`` are those used in talk.

    A global event is news; any other is the speakers' own (``ours``).
    """
    clause = _filled(event.said, {slot: names[agent] for slot, agent in zip(_CAST, event.cast, strict=False)})
    clauses = tuple(_in_the_mouth_of(event, speaker) for speaker in speakers)
    return EventTalk(event.event_id, clause.replace("*", ""), clauses, ours=event.category != "global")


def _in_the_mouth_of(event: WorldEvent, speaker: str) -> str:
    """Return the event as a clause of one speaker, with "I" and "you" for the people in it."""
    spoken = event.said
    if not event.cast:
        return spoken[0].lower() + spoken[1:] if spoken[0] != "*" else spoken[:1] + spoken[1].lower() + spoken[2:]
    acts = event.cast[0] == speaker
    own, others = ("I", "me", "my"), ("you", "you", "your")
    subject, other = (own, others) if acts else (others, own)
    spoken = spoken.replace("$a and $b", "we").replace("$b's", other[2])
    return _filled(spoken, {"$a": subject[0], "$b": other[1]})


def _without_names(spoken: str, group: Group) -> str:
    """Return a line about a group without names of members or places, which could answer questions about facts."""
    of_group = {"family": "our household", "team": "our team"}.get(group.kind)
    spoken = spoken.replace("The $group", of_group or f"the {group.name}").replace(" at $place", "")
    return spoken.replace("$place", "the usual room")


def _filled(text: str, slots: Mapping[str, str]) -> str:
    for slot, words in slots.items():
        text = text.replace(slot, words)
    return text
