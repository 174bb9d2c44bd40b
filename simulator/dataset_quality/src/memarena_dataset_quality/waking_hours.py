"""Counts sessions in which a participant is asleep, and sessions outside the opening hours of their place."""

from __future__ import annotations

from memarena_dataset_quality.world import World, opening_hours

TOLERANCE_HOURS = 1 / 3600
"""Times stand in the files as rounded fractions of a day: a second more or less is the same moment."""


def asleep(world: World) -> int | None:
    """Sessions with a person who sleeps at their start or end by the schedules; None where there are none."""
    if not world.blocks:
        return None
    return sum(
        any(
            _sleeps(world, person, at)
            for person in session.participants
            for at in (session.start_time, session.end_time)
        )
        for session in world.sessions
    )


def _sleeps(world: World, person: str, at: float) -> bool:
    day, hour = int(at), (at - int(at)) * 24
    return any(
        block.activity == "sleep" and block.start_hour + TOLERANCE_HOURS < hour < block.end_hour - TOLERANCE_HOURS
        for block in world.blocks.get((person, day), ())
    )


def outside_hours(world: World) -> int | None:
    """Sessions at a place that is closed at their start or end; None where no place states its hours."""
    hours = opening_hours(world.path)
    if not hours:
        return None
    count = 0
    for session in world.sessions:
        opens, closes = hours.get(session.location_id or "", (0.0, 24.0))
        start = (session.start_time - int(session.start_time)) * 24
        end = start + (session.end_time - session.start_time) * 24
        count += not (opens - TOLERANCE_HOURS <= start and end <= closes + TOLERANCE_HOURS)
    return count
