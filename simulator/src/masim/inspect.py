"""What ``masim inspect`` shows of a data set, from its files: the graph, a day of an agent, the life of a fact."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from masim.errors import MasimError
from masim.output.reading import rows


def graph_lines(folder: Path) -> list[str]:
    """Size of the graph, and each person's three closest."""
    edges = list(rows(folder, "graph_edges.jsonl"))
    near: dict[str, list[tuple[float, str]]] = {}
    for edge in edges:
        near.setdefault(edge["source"], []).append((edge["weight"], edge["target"]))
        near.setdefault(edge["target"], []).append((edge["weight"], edge["source"]))
    lines = [f"{len(near)} people, {len(edges)} edges"]
    for person in sorted(near):
        closest = sorted(near[person], reverse=True)[:3]
        lines.append(f"  {person:<24} " + ", ".join(f"{other} {weight:.2f}" for weight, other in closest))
    return lines


def day_lines(folder: Path, agent: str, day: int) -> list[str]:
    """An agent's day: where they were and whom they talked to. MasimError if there is no such agent or day."""
    schedule = next(
        (row for row in rows(folder, "agent_schedules.jsonl") if row["agent_id"] == agent and row["day_index"] == day),
        None,
    )
    if schedule is None:
        raise MasimError(f"--agent {agent} --day {day}: not in agent_schedules.jsonl of {folder}")
    places = {place["location_id"]: place["name"] for place in json.loads((folder / "locations.json").read_text())}
    lines = [f"{agent}, day {day}, {schedule['day_type']}"]
    for block in schedule["slots"]:
        span = f"{_clock(block['start_hour'])} to {_clock(block['end_hour'])}"
        lines.append(f"  {span}  {block['activity']:<8} {places.get(block['location_id'], block['location_id'])}")
    lines.append("talks:")
    for row in rows(folder, "corpus_sessions.jsonl"):
        if agent in row["participants"] and int(row["start_time"]) == day:
            others = ", ".join(other for other in row["participants"] if other != agent)
            hour = _clock((row["start_time"] - day) * 24)
            lines.append(
                f"  {hour}  {row['session_type']:<20} {row['modality']:<14} {others}, on {row['interest_domain']}"
            )
    return lines


def fact_lines(folder: Path, fact_id: str) -> list[str]:
    """Who said a fact when to whom, in which words, and who was asked after it."""
    said = [row for row in rows(folder, "facts.jsonl") if row["fact_id"] in (fact_id, f"{fact_id}_v")]
    if not said:
        raise MasimError(f"--fact {fact_id}: not in facts.jsonl of {folder}")
    wanted = {row["turn_id"] for row in said}
    where: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for row in rows(folder, "corpus_sessions.jsonl"):
        for turn in row["turns"]:
            if turn["turn_id"] in wanted:
                where[turn["turn_id"]] = (row, turn)
    lines = [f"{fact_id}: {said[0]['subject']}, {said[0]['attribute']}"]
    for row in said:
        session, turn = where[row["turn_id"]]
        heard = ", ".join(person for person in session["participants"] if person != row["speaker_id"])
        day = int(session["start_time"])
        lines.append(f"  day {day}, {row['role']}: {row['speaker_id']} to {heard} ({json.dumps(row['value'])})")
        lines.append(f"    {turn['text']}")
    for path in sorted((folder / "eval_instances").iterdir()):
        for row in rows(path.parent, path.name.removesuffix(".gz")):
            if row["metadata"].get("fact_id") == fact_id:
                lines.append(
                    f"  asked of {row['ego_agent_id']} on day {int(row['metadata']['query_timestamp'])}: {row['query']}"
                )
    return lines


def overview_lines(folder: Path) -> list[str]:
    """Counts, and the facts that were told most often."""
    report = json.loads((folder / "pipeline_report.json").read_text())
    lines = [f"{name}: {count}" for name, count in report.get("counts", {}).items()]
    told = Counter(row["fact_id"] for row in rows(folder, "facts.jsonl"))
    lines.append("told most often: " + ", ".join(f"{fact_id} ({count})" for fact_id, count in told.most_common(5)))
    return lines


def _clock(hours: float) -> str:
    minutes = round(hours * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
