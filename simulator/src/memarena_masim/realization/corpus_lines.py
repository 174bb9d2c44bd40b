"""Writes a session with its text as one line of the corpus file."""

from __future__ import annotations

from typing import Any

from memarena_masim.json_files import dump
from memarena_masim.plan.model import SessionPlan
from memarena_masim.plan.state import turn_id
from memarena_masim.realization.spoken import SpokenTurn

SECONDS_PER_WORD = 0.38
_DAY_SECONDS = 86400


def line_of(plan: SessionPlan, turns: tuple[SpokenTurn, ...]) -> str:
    """Return a session's line of the corpus file."""
    return dump(session_row(plan, turns)) + "\n"


def session_row(plan: SessionPlan, turns: tuple[SpokenTurn, ...]) -> dict[str, Any]:
    """Return the row of a session. A turn lasts as long as its words take; all turns fit into ten minutes."""
    ids = [speaker.agent_id for speaker in plan.speakers]
    seconds = [max(2.0, SECONDS_PER_WORD * (turn.text.count(" ") + 1)) for turn in turns]
    scale = min(1.0, 600 / sum(seconds))
    rows, elapsed = [], 0.0
    event = plan.event_ids[0] if plan.event_ids else None
    for number, (turn, length) in enumerate(zip(turns, seconds, strict=True)):
        rows.append(
            {
                "turn_id": turn_id(plan.session_id, number),
                "session_id": plan.session_id,
                "speaker_id": ids[turn.speaker],
                "listener_id": ids[turn.listener],
                "text": turn.text,
                "timestamp": round(plan.start + elapsed * scale / _DAY_SECONDS, 6),
                "triggering_event": event,
                "entities_mentioned": [],
                "extracted_facts": [],
                "metadata": {},
            }
        )
        elapsed += length
    return {
        "session_id": plan.session_id,
        "participants": ids,
        "turns": rows,
        "start_time": round(plan.start, 6),
        "end_time": round(plan.start + elapsed * scale / _DAY_SECONDS + 1e-5, 6),
        "triggering_events": list(plan.event_ids),
        "location_id": plan.place_id,
        "group_id": plan.group_id,
        "role_name": plan.role_name,
        "modality": plan.modality,
        "interest_domain": plan.topic,
        "session_type": plan.kind.value,
        "metadata": {"probe": plan.sub_kind} if plan.sub_kind else {},
    }
