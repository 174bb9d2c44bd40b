"""Plans daily schedules: where each person is in each quarter of an hour, and when they are awake and free."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from memarena_masim.config import WorldConfig
from memarena_masim.rng import Stream
from memarena_masim.world.model import Person, World

SLOTS = 96
"""Quarter hours of a day."""


@dataclass(frozen=True, slots=True)
class DaySchedule:
    """A person's day: ``places`` (ids) and ``doing`` have SLOTS entries, one for each quarter hour."""

    agent_id: str
    day_type: str
    places: tuple[str, ...]
    doing: tuple[str, ...]
    """``sleep``, ``work``, ``free`` or ``meeting``."""
    roles: tuple[str, ...]

    def awake(self, slot: int) -> bool:
        """Whether the person is awake in a quarter hour."""
        return self.doing[slot] != "sleep"

    def blocks(self) -> list[dict[str, object]]:
        """Return the schedule as rows of the schedules file, one for each stretch with the same place and activity."""
        rows: list[dict[str, object]] = []
        for slot in range(SLOTS):
            place_id, doing = self.places[slot], self.doing[slot]
            if rows and rows[-1]["location_id"] == place_id and rows[-1]["activity"] == doing:
                rows[-1]["end_hour"] = (slot + 1) / 4
            else:
                rows.append(
                    {"start_hour": slot / 4, "end_hour": (slot + 1) / 4, "location_id": place_id, "activity": doing}
                )
        return rows


def plan_schedules(config: WorldConfig, world: World, day: int) -> dict[str, DaySchedule]:
    """Return the schedule of each agent on ``day``, by agent id."""
    weekday = (config.calendar_epoch + timedelta(days=day)).weekday()
    third = [location for location in world.places.values() if location.privacy == "public"]
    schedules: dict[str, DaySchedule] = {}
    for person in world.people:
        stream = Stream(config.key, "schedule", day, person.agent_id)
        schedules[person.agent_id] = _schedule(
            person, world, weekday, stream, [location.location_id for location in third]
        )
    return schedules


def _schedule(person: Person, world: World, weekday: int, stream: Stream, third: list[str]) -> DaySchedule:
    """Return a person's day: sleep, work, visits and meetings of groups, by quarter hour."""
    working = weekday not in person.days_off
    places, doing = [person.home_id] * SLOTS, ["free"] * SLOTS
    roles = ["resident"]
    for slot in range(SLOTS):
        hour = slot / 4
        if not person.wake <= hour < person.sleep:
            doing[slot] = "sleep"
        elif working and person.work_start <= hour < person.work_end:
            places[slot], doing[slot] = person.work_id, "work"
    if working:
        roles.append(person.occupation)
    _visits(person, world, stream, third, places, doing)
    for group in world.groups:
        if group.meets and group.meets[0] == weekday and person.agent_id in group.members:
            # a meeting of a club takes six quarter hours
            for slot in range(group.meets[1] * 4, group.meets[1] * 4 + 6):
                if doing[slot] == "free":
                    places[slot], doing[slot] = group.place_id, "meeting"
            roles.append(dict(group.roles)[person.agent_id])
    return DaySchedule(person.agent_id, "workday" if working else "day off", tuple(places), tuple(doing), tuple(roles))


def _visits(
    person: Person, world: World, stream: Stream, third: list[str], places: list[str], doing: list[str]
) -> None:
    """Add one to three visits to public places to the free time, within opening hours. Changes ``places``."""
    for _ in range(stream.between(1, 3)):
        location = world.places[stream.pick(third)]
        start = stream.between(28, 84)  # from 7:00 to 21:00, for one hour to two and a quarter
        for slot in range(start, min(SLOTS, start + stream.between(4, 9))):
            if doing[slot] == "free" and location.opens <= slot / 4 < location.closes:
                places[slot] = location.location_id
