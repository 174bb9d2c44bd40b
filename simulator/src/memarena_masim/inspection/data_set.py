"""Writes the text that ``masim inspect`` prints: overview, social graph, a person's day, the history of a fact."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import Dataset, open_dataset

from memarena_masim.errors import MasimError
from memarena_masim.inspection.social_graph import LAYER_NAMES, SocialGraph
from memarena_masim.json_files import json_rows, json_value

_SHADES = ("█", "▓", "░", " ")
"""Shades of the layers from the closest outwards, and of no layer."""
MATRIX_PEOPLE = 40
"""Maximum people of a matrix that fits a terminal."""
_SHOWN = 5


@dataclass(frozen=True)
class Inspected:
    """A data set folder to be inspected."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Inspected:
        """Open a data set. MasimError if the folder holds no complete one."""
        if not (folder / "pipeline_report.json").exists():
            raise MasimError(f"{folder}: pipeline_report.json is missing; the folder of a data set is expected")
        return cls(folder)

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the display names of people, by agent id."""
        return {
            str(row["agent_id"]): str(row["persona"].get("name", row["agent_id"]))
            for row in json_rows(self.folder, "agents_personas.jsonl")
            if "owner" not in row["persona"]
        }

    @cached_property
    def graph(self) -> SocialGraph:
        """Return the social graph."""
        return SocialGraph.of(list(self.names), json_rows(self.folder, "graph_edges.jsonl"))

    @property
    def days(self) -> int:
        """Return the number of days of the world."""
        return int(json_value(self.folder, "pipeline_report.json")["day_count"])


def overview_lines(data: Inspected) -> list[str]:
    """Return lines with counts, and with the facts that were stated most often."""
    report = json_value(data.folder, "pipeline_report.json")
    engine = report.get("engine", {})
    lines = [f"made by: {' '.join(str(engine[key]) for key in ('name', 'model') if key in engine) or 'unknown'}"]
    if pack := report.get("configuration", {}).get("pack"):
        lines.append(f"pack: {pack['name']} {pack['version']}, SHA-256 {pack['sha256']}")
    lines += [f"{name}: {count}" for name, count in _counts(data, report).items()]
    if spread := report.get("interference"):
        aims = list(next(iter(spread.values())))
        lines.append(f"questions by near-duplicates that their ego hears, about {', '.join(aims)}:")
        lines += [f"  {family}: {', '.join(map(str, counts.values()))}" for family, counts in spread.items()]
        lines.append(f"  all: {', '.join(str(sum(counts[aim] for counts in spread.values())) for aim in aims)}")
    tellings = Counter(row["fact_id"] for row in json_rows(data.folder, "facts.jsonl"))
    lines.append("told most often: " + ", ".join(f"{fact} ({count})" for fact, count in tellings.most_common(_SHOWN)))
    lines.append(f"people: {', '.join(sorted(data.names)[:_SHOWN])}{', …' if len(data.names) > _SHOWN else ''}")
    return lines


def _counts(data: Inspected, report: dict[str, Any]) -> dict[str, int]:
    """Count the rows of the files; mentions, which no file lists, are from the report."""
    for family, count in report.get("instances", {}).items():
        name = f"eval_instances/{family}.jsonl"
        if count and not any((data.folder / file).exists() for file in (name, f"{name}.gz")):
            raise MasimError(f"{data.folder / name}: missing; pipeline_report.json names {count} questions of it")
    try:
        with open_dataset(data.folder) as dataset:
            counted = {
                "agents": len(data.names),
                "days": dataset.day_count,
                "sessions": len(dataset.corpus),
                "turns": sum(len(session.turns) for session in dataset.corpus.sessions()),
                "events": sum(1 for _ in json_rows(data.folder, "events.jsonl")),
                "statements": sum(1 for _ in json_rows(data.folder, "facts.jsonl")),
                "instances": len(dataset.instances),
            }
    except DatasetError as error:
        raise MasimError(str(error)) from error
    stated = report.get("counts", {})
    return {name: counted.get(name, count) for name, count in {**stated, **counted}.items()}


def graph_lines(data: Inspected) -> list[str]:
    """Return the social graph as lines: a matrix of layers if it fits, then each person's people with weights."""
    graph = data.graph
    sizes = Counter(edge.layer for edge in graph.edges)
    layer_counts = ", ".join(f"{sizes[layer]} {name}" for layer, name in enumerate(LAYER_NAMES))
    lines = [f"{len(graph.people)} people, {len(graph.edges)} pairs: {layer_counts}, {sizes[-1]} of no layer"]
    if len(graph.people) <= MATRIX_PEOPLE:
        lines += ["", *_matrix(data)]
    for person in graph.people:
        lines += ["", f"{data.names[person]} ({person})"]
        for layer, name in enumerate(LAYER_NAMES):
            near = graph.near(person, layer)
            if near:
                nearest = ", ".join(f"{data.names[other]} {weight:.2f}" for weight, other in near)
                lines.append(f"  {_SHADES[layer]} {name:<15} {nearest}")
    return lines


def _matrix(data: Inspected) -> list[str]:
    graph, width = data.graph, max(len(name) for name in data.names.values())
    legend = ", ".join(f"{_SHADES[layer]} {name}" for layer, name in enumerate(LAYER_NAMES))
    lines = [f"  {legend}", f"  {'':<{width}}    " + " ".join(f"{n:>2}" for n in range(1, len(graph.people) + 1))]
    for number, person in enumerate(graph.people, 1):
        cells = ["  " if person == other else _SHADES[graph.layer(person, other)] * 2 for other in graph.people]
        cells[number - 1] = "\\ "
        lines.append(f"  {data.names[person]:<{width}} {number:>2} {' '.join(cells)}".rstrip())
    return lines


def day_lines(data: Inspected, agent: str, day: int) -> list[str]:
    """Return an agent's day as lines: places, sessions in order, and the statements in each.

    MasimError if there is no such agent or day.
    """
    _check_agent(data, agent)
    if not 0 <= day < data.days:
        raise MasimError(f"--day {day}: {data.folder} has days 0 to {data.days - 1}")
    schedule = next(
        row
        for row in json_rows(data.folder, "agent_schedules.jsonl")
        if row["agent_id"] == agent and row["day_index"] == day
    )
    stated: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in json_rows(data.folder, "facts.jsonl"):
        stated[row["session_id"]].append(row)
    with _opened(data) as dataset:
        places = {location.location_id: location.name for location in dataset.locations.values()}
        sessions = sorted(dataset.day_sessions(agent, day), key=lambda session: session.start_time)
        events = dataset.day_events(agent, day)
    lines = [f"{data.names[agent]}, day {day}, {schedule['day_type']}: {', '.join(schedule['active_roles'])}"]
    for event in events:
        lines.append(f"  {_clock(event.timestamp - day)}  hears of: {event.content}")
    for block in schedule["slots"]:
        start, end = block["start_hour"], block["end_hour"]
        place_name = places.get(block["location_id"], block["location_id"] or "on the move")
        lines.append(f"{_clock(start / 24)} to {_clock(end / 24)}  {block['activity']:<8} {place_name}")
        for session in sessions:
            if start <= round((session.start_time - day) * 24, 4) < end:
                others = ", ".join(
                    data.names.get(participant, "assistant")
                    for participant in session.participants
                    if participant != agent
                )
                lines.append(
                    f"  {_clock(session.start_time - day)}  {session.session_type}, {session.modality}, with {others}, "
                    f"on {session.interest_domain}: {len(session.turns)} turns ({session.session_id})"
                )
                for row in stated[session.session_id]:
                    speaker_name = data.names.get(row["speaker_id"], row["speaker_id"])
                    lines.append(f"           {speaker_name}: {row['role']} {row['attribute']} ({row['fact_id']})")
    return lines


def fact_lines(data: Inspected, fact_id: str) -> list[str]:
    """Return the history of a fact as lines: who learned it when, from whom, in which words, and its questions.

    MasimError if there is no such fact.
    """
    rows = [row for row in json_rows(data.folder, "facts.jsonl") if row["fact_id"] in (fact_id, f"{fact_id}_v")]
    if not rows:
        raise MasimError(f"--fact {fact_id}: not in facts.jsonl; `masim inspect {data.folder}` names some")
    subject = data.names.get(rows[0]["subject"], rows[0]["subject"])
    lines, knows = [f"{fact_id}: {subject}, {rows[0]['attribute']}"], dict[str, str]()
    with _opened(data) as dataset:
        sessions = {row["session_id"]: dataset.session(row["session_id"]) for row in rows}
        for row in sorted(rows, key=lambda row: sessions[row["session_id"]].start_time):
            session = sessions[row["session_id"]]
            turn = next(turn for turn in session.turns if turn.turn_id == row["turn_id"])
            day = int(session.start_time)
            speaker = data.names.get(row["speaker_id"], row["speaker_id"])
            heard = [
                data.names.get(participant, "the assistant")
                for participant in session.participants
                if participant != row["speaker_id"]
            ]
            version = " (changed version)" if row["fact_id"] != fact_id else ""
            level = f", asks for {row['level']}" if row["level"] else ""
            lines.append(f"  day {day}, {_clock(turn.timestamp - day)}: {speaker} to {', '.join(heard)}")
            lines.append(f"    {row['role']}{version}{level}: {_shown(row['value'])} ({row['turn_id']})")
            lines.append(f"    “{turn.text}”")
            for hearer in heard:
                knows.setdefault(hearer, f"{hearer} from {speaker}, known from day {day + 1}")
        lines.append("  learned: " + "; ".join(knows.values()))
        asked = [instance for instance in dataset.instances if (instance.metadata or {}).get("fact_id") == fact_id]
        for instance in asked:
            day = dataset.question_day(instance)
            ego = data.names[instance.ego_agent_id]
            lines.append(f"  asked of {ego} on day {day} ({instance.family.value}): {instance.query}")
    if not asked:
        lines.append("  never asked")
    return lines


def _check_agent(data: Inspected, agent: str) -> None:
    if agent in data.names:
        return
    owner = agent.removeprefix("assistant_")
    some = ", ".join(sorted(data.names)[:3])
    hint = f"--agent {owner} has the day" if owner in data.names else f"people are {some}, …"
    raise MasimError(f"--agent {agent}: nobody of that id in {data.folder}; {hint}")


def _opened(data: Inspected) -> Dataset:
    try:
        return open_dataset(data.folder)
    except DatasetError as error:
        raise MasimError(str(error)) from error


def _shown(value: dict[str, Any]) -> str:
    return " ".join(str(part) for key, part in value.items() if key not in ("type", "aliases"))


def _clock(days: float) -> str:
    minutes = round(days * 1440)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
