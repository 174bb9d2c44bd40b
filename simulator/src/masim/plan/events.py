"""What happens in the world on a day, and who can see it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from masim.config import WorldConfig
from masim.errors import MasimError
from masim.plan.facts import opaque
from masim.streams import Stream
from masim.text.library import BANKS
from masim.world.model import Group, World, WorldEvent

EVENTS_PER_AGENT_DAY = 0.1
"""The released data set has 75 events for 50 agents over 15 days."""
CATEGORIES = (("global", 0.15), ("community", 0.40), ("dyadic", 0.27), ("private", 0.18))


@dataclass(frozen=True, slots=True)
class EventKind:
    """A sort of event: its category, its name, how often it is drawn within its category, what it says."""

    category: str
    name: str
    weight: float
    lines: tuple[str, ...]


@cache
def event_kinds() -> dict[str, tuple[EventKind, ...]]:
    """Kinds of events by category. MasimError names the section that cannot be used."""
    try:
        sections = tomllib.loads((BANKS / "facts" / "events.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"facts/events.toml: {error}") from error
    kinds: dict[str, tuple[EventKind, ...]] = {}
    for category, _ in CATEGORIES:
        rows = sections.get(category, {})
        for name, row in rows.items():
            if not row.get("lines") or row.get("weight", 0) <= 0:
                raise MasimError(f"facts/events.toml: {category}.{name}: lines and a weight above 0 are expected")
        kinds[category] = tuple(
            EventKind(category, name, row["weight"], tuple(row["lines"])) for name, row in rows.items()
        )
        if not kinds[category]:
            raise MasimError(f"facts/events.toml: no section [{category}.…]")
    return kinds


def plan_events(config: WorldConfig, world: World, day: int) -> list[WorldEvent]:
    """The events of a day, by time. The first one is seen by several people, so that there is something to talk of."""
    stream = Stream(config.key, "events", day)
    count = max(2, round(config.agents * EVENTS_PER_AGENT_DAY))
    found = []
    for number in range(count):
        drawn = CATEGORIES[:2] if number == 0 else CATEGORIES
        category = stream.weighted([name for name, _ in drawn], [share for _, share in drawn])
        found.append(_event(config, world, day, number, category, stream))
    return sorted(found, key=lambda event: (event.time, event.event_id))


def _event(config: WorldConfig, world: World, day: int, number: int, category: str, stream: Stream) -> WorldEvent:
    ids = [person.agent_id for person in world.people]
    group: Group | None = None
    if category == "community" and world.groups:
        group = stream.pick(world.groups)
        mask = group.members
    elif category == "dyadic":
        one = stream.pick(ids)
        near = [other for other in ids if other != one and world.edge(one, other).layer >= 0] or ids
        mask = (one, stream.pick([other for other in near if other != one]))
    elif category == "private":
        mask = (stream.pick(ids),)
    else:
        category, mask = "global", tuple(ids)
    kinds = event_kinds()[category]
    kind = stream.weighted(kinds, [kind.weight for kind in kinds])
    content = stream.pick(kind.lines)
    if group is not None:
        place = world.places[group.place_id].name
        content = content.replace("$group", group.name).replace("$place", place)
    elif category != "global":
        for slot, agent in zip(("$a", "$b"), mask, strict=False):
            content = content.replace(slot, world.person(agent).name)
    return WorldEvent(
        event_id=opaque("event", config.key, day, number),
        time=round(day + 0.25 + 0.1 * stream.unit(), 5),
        category=category,
        content=f"{content}.",
        mask=tuple(sorted(mask)),
        location_id=group.place_id if group else None,
        event_type=kind.name,
        group_id=group.group_id if group else None,
    )
