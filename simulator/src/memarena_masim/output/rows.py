"""Builds the rows of people, schedules, events, statements and of the report, with keys in a fixed order.

The fixed order keeps the files of a seed the same, byte for byte. Sessions get their rows in
``realization/corpus_lines.py``, questions in ``questions/derive.py``, and groups and places in ``world_files.py``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from memarena_dataset.model import SUFFICIENT_TURNS_VERSION

from memarena_masim.config import WorldConfig
from memarena_masim.plan.impressions import Impressions, impressions_row
from memarena_masim.plan.schedule import DaySchedule
from memarena_masim.plan.state import StatedFact
from memarena_masim.world.build import relation
from memarena_masim.world.model import Person, World, WorldEvent

GENERATOR_VERSION = 4
"""Worlds of the same seed and version are the same; it goes up when plans or questions change."""


def persona_row(person: Person, world: World, impressions: Impressions) -> dict[str, Any]:
    """Return a person with the people they know and their impressions of those they met, as of the last midnight."""
    neighbors = [
        {"agent_id": other.agent_id, "relation": relation(world, person.agent_id, other.agent_id)}
        for other in world.people
        if other.agent_id != person.agent_id and world.edge(person.agent_id, other.agent_id).layer >= 0
    ]
    persona = {
        "name": person.name,
        "age": person.age,
        "occupation": person.occupation,
        "traits": list(person.traits),
        "speaking_style": person.style,
        "values": list(person.values),
        "concerns": list(person.concerns),
        "hobbies": list(person.hobbies),
        "home": person.home_id,
        "workplace": person.work_id,
        "wakes": person.wake,
        "sleeps": person.sleep,
    }
    impressions_of_person = impressions_row(impressions.of.get(person.agent_id, {}))
    return {
        "agent_id": person.agent_id,
        "persona": persona,
        "social_neighbors": neighbors,
        "person_impressions": impressions_of_person,
    }


def assistant_row(person: Person) -> dict[str, Any]:
    """Return a person's assistant."""
    persona = {"name": f"{person.name}'s assistant", "owner": person.agent_id}
    return {"agent_id": person.assistant_id, "persona": persona, "social_neighbors": [], "person_impressions": {}}


def schedule_row(schedule: DaySchedule, day: int) -> dict[str, Any]:
    """Return a person's schedule of one day."""
    return {
        "agent_id": schedule.agent_id,
        "day_index": day,
        "day_type": schedule.day_type,
        "active_roles": list(schedule.roles),
        "slots": schedule.blocks(),
    }


def event_row(event: WorldEvent) -> dict[str, Any]:
    """Return an event with the people who could see it."""
    return {
        "event_id": event.event_id,
        "timestamp": event.time,
        "event_type": event.event_type,
        "content": event.content,
        "visibility_mask": list(event.mask),
        "category": event.category,
        "location_id": event.location_id,
        "interest_domain": None,
        "metadata": {"group_id": event.group_id} if event.group_id else {},
    }


def fact_row(stated: StatedFact, asked: bool) -> dict[str, Any]:
    """Return a statement. Its value is the stated one, which in a changed version differs from the fact's."""
    version = stated.value.text != stated.fact.value.text
    replaced = {"supersedes": stated.fact.supersedes} if stated.fact.supersedes else {}
    sharing = stated.wish.sharing
    return {
        "fact_id": f"{stated.fact.fact_id}_v" if version else stated.fact.fact_id,
        "subject": stated.fact.subject,
        "attribute": stated.fact.about,
        "value": stated.value.value.model_dump(exclude_none=True),
        "level": stated.wish.level,
        **({"sharing": sharing} if sharing else {}),
        "session_id": stated.session_id,
        "turn_id": stated.turn_id,
        "speaker_id": stated.speaker,
        "asked": asked,
        "role": stated.role.value,
        **replaced,
    }


def report_row(config: WorldConfig, counts: dict[str, Any]) -> dict[str, Any]:
    """Return how the data set was generated, with ``counts``."""
    return {
        "generator": "masim",
        "generator_version": GENERATOR_VERSION,
        "calendar_epoch": config.calendar_epoch.isoformat(),
        "day_count": config.days,
        "last_date": (config.calendar_epoch + timedelta(days=config.days - 1)).isoformat(),
        "seed": config.seed,
        "sufficient_turns_version": SUFFICIENT_TURNS_VERSION,
        "configuration": config.model_dump(mode="json"),
        **counts,
    }
