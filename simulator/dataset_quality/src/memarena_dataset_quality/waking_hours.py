"""Counts sessions in which a participant is asleep, and sessions outside the opening hours of their place."""

from __future__ import annotations

from memarena_dataset_quality.world import World, opening_hours

TOLERANCE_HOURS = 1 / 3600
"""One second: times in the files are rounded fractions of a day."""


def asleep(world: World) -> int | None:
    """Count the sessions in which a person sleeps at the start or end; None if there are no schedules."""
    if not world.blocks:
        return None
    return sum(
        any(
            _sleeps(world, person, moment)
            for person in session.participants
            for moment in (session.start_time, session.end_time)
        )
        for session in world.sessions
    )


def _sleeps(world: World, person: str, at: float) -> bool:
    """Whether a person sleeps at a time in simulated days."""
    day, hour = int(at), (at - int(at)) * 24
    return any(
        block.activity == "sleep" and block.start_hour + TOLERANCE_HOURS < hour < block.end_hour - TOLERANCE_HOURS
        for block in world.blocks.get((person, day), ())
    )


def outside_hours(world: World) -> int | None:
    """Count the sessions at a location that is closed at their start or end; None if no location has opening hours."""
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
