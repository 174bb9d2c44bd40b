"""What happens in the world on a day, and who can see it."""

from __future__ import annotations

from masim.config import WorldConfig
from masim.plan.facts import opaque
from masim.streams import Stream
from masim.world.build import pools
from masim.world.model import World, WorldEvent

EVENTS_PER_AGENT_DAY = 0.1
"""The released data set has 75 events for 50 agents over 15 days."""


def plan_events(config: WorldConfig, world: World, day: int) -> list[WorldEvent]:
    """The events of a day, by time."""
    stream, pool = Stream(config.key, "events", day), pools()["events"]
    count = max(2, round(config.agents * EVENTS_PER_AGENT_DAY))
    ids = [person.agent_id for person in world.people]
    names = {person.agent_id: person.name for person in world.people}
    found = []
    for number in range(count):
        category = stream.weighted(("global", "community", "dyadic", "private"), (0.1, 0.4, 0.3, 0.2))
        time, place = day + 0.25 + 0.1 * stream.unit(), None
        if category == "global" or not world.groups:
            category, mask, content = "global", tuple(ids), stream.pick(pool["global"])
        elif category == "community":
            group = stream.pick(world.groups)
            mask, place = group.members, group.place_id
            content = f"The {group.name} {stream.pick(pool['community'])}"
        elif category == "dyadic":
            pair = stream.sample(ids, 2)
            mask = tuple(sorted(pair))
            content = f"{names[mask[0]]} and {names[mask[1]]} {stream.pick(pool['dyadic'])}"
        else:
            mask = (stream.pick(ids),)
            content = f"{names[mask[0]]} {stream.pick(pool['private'])}"
        event_id = opaque("event", config.key, day, number)
        found.append(WorldEvent(event_id, round(time, 5), category, f"{content}.", tuple(sorted(mask)), place))
    return sorted(found, key=lambda event: (event.time, event.event_id))
