"""Writes the files of a world: people, days, events, groups, places, the social graph, sessions by person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from memarena_masim.config import WorldConfig
from memarena_masim.json_files import dump
from memarena_masim.output.rows import assistant_row, event_row, persona_row, schedule_row
from memarena_masim.plan.events import plan_events
from memarena_masim.plan.impressions import Impressions
from memarena_masim.plan.schedule import plan_schedules
from memarena_masim.world.model import World


def write_world(
    config: WorldConfig,
    world: World,
    sessions_of: Mapping[str, Sequence[str]],
    impressions: Impressions,
    out: Path,
) -> None:
    """Write the files to ``out``. ``impressions`` are of the last midnight; ``sessions_of`` maps agents to sessions.

    Schedules and events depend on seed and day alone; they are planned again, so that a year of them is never held.
    """
    days = range(config.days)
    write_lines(
        out / "agents_personas.jsonl",
        (row for person in world.people for row in (persona_row(person, world, impressions), assistant_row(person))),
    )
    write_lines(
        out / "agent_schedules.jsonl",
        (schedule_row(schedule, day) for day in days for schedule in plan_schedules(config, world, day).values()),
    )
    write_lines(out / "events.jsonl", (event_row(event) for day in days for event in plan_events(config, world, day)))
    groups = [
        {
            "group_id": group.group_id,
            "name": group.name,
            "kind": group.kind,
            "members": list(group.members),
            "roles": dict(group.roles),
            "location_id": group.place_id,
            "meets": {"weekday": group.meets[0], "hour": group.meets[1]} if group.meets else None,
        }
        for group in world.groups
    ]
    places = [
        {
            "location_id": location.location_id,
            "name": location.name,
            "kind": location.kind,
            "opens": location.opens,
            "closes": location.closes,
            "privacy": location.privacy,
        }
        for location in world.places.values()
    ]
    (out / "groups.json").write_text(dump(groups) + "\n", encoding="utf-8")
    (out / "locations.json").write_text(dump(places) + "\n", encoding="utf-8")
    edges = ({"source": edge.source, "target": edge.target, "weight": edge.weight} for edge in world.edges.values())
    write_lines(out / "graph_edges.jsonl", edges)
    (out / "ego_session_map.json").write_text(dump(dict(sorted(sessions_of.items()))) + "\n", encoding="utf-8")


def write_lines(path: Path, rows: Iterable[object]) -> None:
    """Write one line of JSON per row."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(dump(row) + "\n")
