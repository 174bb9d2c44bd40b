"""Draws the meetings of a day: who meets whom, when, where and by which medium; ``day.py`` makes sessions of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from memarena_masim.config import PA_SESSIONS_PER_AGENT_DAY, WorldConfig
from memarena_masim.plan.impressions import Impressions
from memarena_masim.plan.model import Kind
from memarena_masim.plan.schedule import SLOTS, DaySchedule
from memarena_masim.rng import Stream
from memarena_masim.world.model import World, WorldEvent

KIND_SHARES = ((Kind.TOPIC, 0.40), (Kind.EVENT, 0.15), (Kind.ENCOUNTER, 0.25), (Kind.REMOTE, 0.20))
"""Kinds of the talks between people, with their shares."""
ASSISTANT_SHARES = ((Kind.NARRATION, 0.40), (Kind.REFLECTION, 0.30), (Kind.PROBE, 0.30))
"""Kinds of the sessions with an assistant, with their shares; on the first day, all are narrations."""
TRIES = 60
"""Maximum draws of partner and quarter hour before a meeting is dropped."""
TALKED_OF_DAYS = 3
"""Number of days, including today, whose events people talk about."""
WARMTH = 0.12
"""Increase of a partner's relative weight per point of warmth."""
THIRD_PERSON = 0.12
"""Share of the meetings in person that a third person joins, at density 1; at lower densities, it is larger."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """The frame of a session. ``slot`` is the index of the quarter hour of the day in which it starts."""

    kind: Kind
    modality: str
    slot: int
    people: tuple[str, ...]
    place_id: str | None = None
    group_id: str | None = None
    event: WorldEvent | None = None
    """The event that the people talk about: all of them could see it, and it is over."""


class DayMeetings:
    """Draws the meetings of one day. No person is in two sessions at once, or in one while asleep."""

    def __init__(
        self,
        config: WorldConfig,
        world: World,
        day: int,
        schedules: dict[str, DaySchedule],
        events: list[WorldEvent],
        impressions: Impressions | None = None,
    ) -> None:
        """``events`` are those that people may talk about; ``impressions`` those of the last midnight."""
        self._config, self._world, self._day = config, world, day
        self._schedules, self._events = schedules, [event for event in events if len(event.mask) > 1]
        self._impressions = impressions or Impressions()
        self._stream = Stream(config.key, "meetings", day)
        self._busy = {person.agent_id: bytearray(SLOTS) for person in world.people}
        self._ids = [person.agent_id for person in world.people]
        self._partners = {person: self._partner_sums(person) for person in self._ids}
        self._group_of = {
            (member, other): group.group_id
            for group in world.groups
            for member in group.members
            for other in group.members
            if member != other
        }

    def _partner_sums(self, person: str) -> tuple[list[str], list[float]]:
        others = [other for other in self._ids if other != person]
        weights = (
            self._world.edge(person, other).weight * (1 + WARMTH * self._impressions.warmth(person, other))
            for other in others
        )
        return others, list(accumulate(weights))

    def draw(self) -> list[Meeting]:
        """Draw all meetings of the day, sorted by start."""
        count = len(self._ids)
        between_people = round(count * self._config.talks_per_agent_day)
        with_assistant = round(count * PA_SESSIONS_PER_AGENT_DAY * self._config.density)
        meetings: list[Meeting] = []
        for number in range(between_people):
            meeting = self._between_people(self._kind(KIND_SHARES), self._ids[(number * 7 + self._day) % count])
            if meeting is not None:
                meetings.append(meeting)
        for number in range(with_assistant):
            kind = self._kind(ASSISTANT_SHARES) if self._day else Kind.NARRATION
            meeting = self._with_assistant(kind, self._ids[number % count])
            if meeting is not None:
                meetings.append(meeting)
        return sorted(meetings, key=lambda meeting: (meeting.slot, meeting.people, meeting.kind.value))

    def _kind(self, shares: tuple[tuple[Kind, float], ...]) -> Kind:
        return self._stream.weighted([kind for kind, _ in shares], [share for _, share in shares])

    def _with_assistant(self, kind: Kind, owner: str) -> Meeting | None:
        for _ in range(TRIES):
            slot = self._stream.below(SLOTS)
            if self._free(owner, slot):
                self._busy[owner][slot] = 1
                modality = "voice_message" if self._stream.chance(0.6) else "text_message"
                return Meeting(kind, modality, slot, (owner,))
        return None

    def _between_people(self, kind: Kind, person: str) -> Meeting | None:
        """Draw a meeting of ``person`` with another person; None if TRIES draws give none that is possible."""
        event: WorldEvent | None = None
        if kind is Kind.EVENT:
            if not self._events:
                return None
            event = self._shared_event(person) or self._stream.pick(self._events)
        for _ in range(TRIES):
            if event is not None and person not in event.mask:
                person = self._stream.pick(event.mask)
            other = self._partner(person, event)
            slot = self._stream.below(SLOTS)
            if other is None or not (self._free(person, slot) and self._free(other, slot)):
                continue
            if event is not None and self._day + slot / SLOTS < event.time:
                continue  # it has not happened yet
            location = None if kind is Kind.REMOTE else self._place(person, other, slot)
            if location is None and kind is Kind.ENCOUNTER:
                continue
            return self._meeting(kind, slot, person, other, location, event)
        return None

    def _meeting(
        self, kind: Kind, slot: int, first: str, second: str, location: str | None, event: WorldEvent | None
    ) -> Meeting:
        """Return a meeting in a drawn medium, perhaps with a third person, and mark its people as busy."""
        people = [first, second]
        if location is not None and self._stream.chance(min(0.6, THIRD_PERSON / self._config.density)):
            third = self._stream.pick(self._ids)
            in_the_know = event is None or third in event.mask
            if in_the_know and third not in people and self._free(third, slot) and self._reaches(third, location, slot):
                people.append(third)
        for person in people:
            self._busy[person][slot] = 1
        if location is not None:
            modality = "face_to_face"
        else:
            modality = "text_message" if self._stream.chance(0.55) else "voice_message"
        group = self._group_of.get((first, second)) if self._stream.chance(0.5) else None
        return Meeting(kind, modality, slot, tuple(people), location, group, event)

    def _shared_event(self, person: str) -> WorldEvent | None:
        events = [event for event in self._events if person in event.mask]
        return self._stream.pick(events) if events else None

    def _partner(self, person: str, event: WorldEvent | None) -> str | None:
        """Draw another person: one who could see the event, else by the weight of their tie; None if there is none."""
        if event is not None:
            others = [other for other in event.mask if other != person]
            return self._stream.pick(others) if others else None
        # the first person, by bisection, at whom the sum of weights exceeds a random number
        others_sums = self._partners[person]
        remaining = self._stream.unit() * others_sums[1][-1]
        low, high = 0, len(others_sums[1]) - 1
        while low < high:
            middle = (low + high) // 2
            if others_sums[1][middle] > remaining:
                high = middle
            else:
                low = middle + 1
        return others_sums[0][low]

    def _free(self, person: str, slot: int) -> bool:
        return self._schedules[person].awake(slot) and not self._busy[person][slot]

    def _reaches(self, person: str, place_id: str, slot: int) -> bool:
        schedule = self._schedules[person]
        location = self._world.places[place_id]
        if not location.opens <= slot / 4 < location.closes:
            return False
        return schedule.places[slot] == place_id or (schedule.doing[slot] == "free" and location.privacy == "public")

    def _place(self, person: str, other: str, slot: int) -> str | None:
        """Return the id of a place where two people can meet in a quarter hour; None if there is none."""
        first, second = self._schedules[person].places[slot], self._schedules[other].places[slot]
        for location in (first, second):
            if self._reaches(person, location, slot) and self._reaches(other, location, slot):
                return location
        free = self._schedules[person].doing[slot] == "free" == self._schedules[other].doing[slot]
        if free and first.startswith("home") and second.startswith("home"):
            third = [key for key in self._world.places if key.startswith("third")]
            location = self._stream.pick(third)
            return location if self._reaches(person, location, slot) and self._reaches(other, location, slot) else None
        return None
