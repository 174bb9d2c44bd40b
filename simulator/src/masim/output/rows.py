"""Rows of the files of a data set, as plain values in a fixed order."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from masim.config import WorldConfig
from masim.plan.impressions import Impressions, impressions_row
from masim.plan.model import SessionPlan
from masim.plan.schedule import DaySchedule
from masim.plan.state import StatedFact, turn_id
from masim.text.speech import SpokenTurn
from masim.world.build import relation
from masim.world.model import Person, World, WorldEvent

SECONDS_PER_WORD = 0.38
_DAY_SECONDS = 86400


def dump(row: object) -> str:
    """One line of JSON, the same on every machine."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def session_row(plan: SessionPlan, turns: tuple[SpokenTurn, ...]) -> dict[str, Any]:
    """A session with its words. A turn lasts as long as its words take, within the session's quarter hour."""
    ids = [speaker.agent_id for speaker in plan.speakers]
    seconds = [max(2.0, SECONDS_PER_WORD * (turn.text.count(" ") + 1)) for turn in turns]
    scale = min(1.0, 600 / sum(seconds))
    rows, at = [], 0.0
    event = plan.event_ids[0] if plan.event_ids else None
    for number, (turn, length) in enumerate(zip(turns, seconds, strict=True)):
        rows.append(
            {
                "turn_id": turn_id(plan.session_id, number),
                "session_id": plan.session_id,
                "speaker_id": ids[turn.speaker],
                "listener_id": ids[turn.listener],
                "text": turn.text,
                "timestamp": round(plan.start + at * scale / _DAY_SECONDS, 6),
                "triggering_event": event,
                "entities_mentioned": [],
                "extracted_facts": [],
                "metadata": {},
            }
        )
        at += length
    return {
        "session_id": plan.session_id,
        "participants": ids,
        "turns": rows,
        "start_time": round(plan.start, 6),
        "end_time": round(plan.start + at * scale / _DAY_SECONDS + 1e-5, 6),
        "triggering_events": list(plan.event_ids),
        "location_id": plan.place_id,
        "group_id": plan.group_id,
        "role_name": plan.role_name,
        "modality": plan.modality,
        "interest_domain": plan.threads[0].topic,
        "session_type": plan.kind.value,
        "metadata": {"probe": plan.sub_kind} if plan.sub_kind else {},
    }


def persona_row(person: Person, world: World, impressions: Impressions) -> dict[str, Any]:
    """A person with the people they know and what they think of those they met, as of the last midnight."""
    neighbors = [
        {"agent_id": other.agent_id, "relation": relation(world, person.agent_id, other.agent_id)}
        for other in world.people
        if other.agent_id != person.agent_id and world.edge(person.agent_id, other.agent_id).layer >= 0
    ]
    persona = {
        "name": person.name,
        "age": person.age,
        "occupation": person.occupation,
        "riasec": person.riasec,
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
    known = impressions_row(impressions.of.get(person.agent_id, {}))
    return {"agent_id": person.agent_id, "persona": persona, "social_neighbors": neighbors, "person_impressions": known}


def assistant_row(person: Person) -> dict[str, Any]:
    """A person's assistant."""
    persona = {"name": f"{person.name}'s assistant", "owner": person.agent_id}
    return {"agent_id": person.assistant_id, "persona": persona, "social_neighbors": [], "person_impressions": {}}


def schedule_row(schedule: DaySchedule, day: int) -> dict[str, Any]:
    """A person's day."""
    return {
        "agent_id": schedule.agent_id,
        "day_index": day,
        "day_type": schedule.day_type,
        "active_roles": list(schedule.roles),
        "slots": schedule.blocks(),
    }


def event_row(event: WorldEvent) -> dict[str, Any]:
    """An event with those who could see it."""
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
    """A statement. The value is what was said, which in a changed version is not the fact's own."""
    version = stated.value.text != stated.fact.value.text
    replaced = {"supersedes": stated.fact.supersedes} if stated.fact.supersedes else {}
    return {
        "fact_id": f"{stated.fact.fact_id}_v" if version else stated.fact.fact_id,
        "subject": stated.fact.subject,
        "attribute": stated.fact.about,
        "value": stated.value.value.model_dump(exclude_none=True),
        "level": stated.level,
        "session_id": stated.session_id,
        "turn_id": stated.turn_id,
        "speaker_id": stated.speaker,
        "asked": asked,
        "role": stated.role.value,
        **replaced,
    }


def report_row(config: WorldConfig, counts: dict[str, Any]) -> dict[str, Any]:
    """How the data set was made."""
    return {
        "generator": "masim",
        "calendar_epoch": config.calendar_epoch.isoformat(),
        "day_count": config.days,
        "last_date": (config.calendar_epoch + timedelta(days=config.days - 1)).isoformat(),
        "seed": config.seed,
        "configuration": config.model_dump(mode="json"),
        **counts,
    }
