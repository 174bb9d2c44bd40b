"""Checks the structure of any data set: ids exist, times are in order, the small files agree with the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memarena_dataset.checks.findings import Finding, Severity
from memarena_dataset.checks.world import World
from memarena_dataset.errors import DatasetError, FieldError, RowProblem
from memarena_dataset.io.files import CORPUS, EDGES, EGO_MAP, EVENTS, GROUPS, PERSONAS, REPORT, SCHEDULES, Folder
from memarena_dataset.io.reading import Dataset
from memarena_dataset.io.rows import load_object
from memarena_dataset.model import Session
from memarena_dataset.text_golds import text_gold_warning

_TIME_SLACK = 1e-4
"""Tolerance of times in days (about nine seconds), for rounding."""


def _finding(check: str, file: str, line: int | None, field: str, reason: str, severity: Severity = "error") -> Finding:
    return Finding(check, severity, RowProblem(file, reason, line, field))


# ------------------------------------------------------------------ sessions


def sessions(world: World) -> Iterator[Finding]:
    """Yield faults within each session, and turn ids that occur in several sessions."""
    dataset = world.dataset
    session_of: dict[str, str] = {}
    known_events = frozenset(event.event_id for event in dataset.events)
    for session in dataset.corpus.sessions():
        line = dataset.corpus.line_of(session.session_id)
        for field, reason, severity in _session_faults(session, dataset, known_events):
            yield _finding("session", CORPUS, line, field, reason, severity)
        for index, turn in enumerate(session.turns):
            earlier = session_of.setdefault(turn.turn_id, session.session_id)
            if earlier != session.session_id:
                reason = f"{turn.turn_id!r} is also a turn of session {earlier!r}"
                yield _finding("session", CORPUS, line, f"turns.{index}.turn_id", reason)


def _session_faults(
    session: Session, dataset: Dataset, known_events: frozenset[str]
) -> Iterator[tuple[str, str, Severity]]:
    """Yield field, reason and severity of each fault of a session."""
    if not session.participants:
        yield "participants", "empty; at least one agent is expected", "error"
    if len(set(session.participants)) != len(session.participants):
        yield "participants", "a person is named twice", "error"
    if not session.turns:
        yield "turns", "empty; at least one turn is expected", "error"
    if session.end_time < session.start_time:
        yield "end_time", f"{session.end_time} is before start_time {session.start_time}", "error"
    elif int(session.end_time - 1e-9) > session.day:
        yield "end_time", "on a later day than start_time: all of it counts for the day of its start", "warning"
    if session.location_id is not None and dataset.locations and session.location_id not in dataset.locations:
        yield "location_id", f"{session.location_id!r} is not in locations.json", "error"
    if session.group_id is not None and dataset.groups and session.group_id not in dataset.groups:
        yield "group_id", f"{session.group_id!r} is not in groups.json", "error"
    for event_id in (session.model_extra or {}).get("triggering_events") or ():
        if known_events and isinstance(event_id, str) and event_id not in known_events:
            yield "triggering_events", f"{event_id!r} is not in events.jsonl", "error"
    yield from _turn_faults(session)


def _turn_faults(session: Session) -> Iterator[tuple[str, str, Severity]]:
    """Yield field, reason and severity of each fault of a session's turns."""
    before = session.start_time
    for index, turn in enumerate(session.turns):
        field = f"turns.{index}"
        if turn.speaker_id not in session.participants:
            yield f"{field}.speaker_id", f"{turn.speaker_id!r} is not one of the participants", "error"
        if turn.listener_id is not None and turn.listener_id not in session.participants:
            yield f"{field}.listener_id", f"{turn.listener_id!r} is not one of the participants", "warning"
        if not turn.text.strip():
            yield f"{field}.text", "empty", "warning"
        if not session.start_time - _TIME_SLACK <= turn.timestamp <= session.end_time + _TIME_SLACK:
            reason = f"{turn.timestamp} is outside the session ({session.start_time} to {session.end_time})"
            yield f"{field}.timestamp", reason, "error"
        elif turn.timestamp < before - _TIME_SLACK:
            yield f"{field}.timestamp", f"{turn.timestamp} is before the turn above ({before})", "error"
        before = turn.timestamp


# ------------------------------------------------------------------ small files


def small_files(world: World) -> Iterator[Finding]:
    """Yield a warning for each missing file that a run does not need, but a reader of its results would."""
    dataset = world.dataset
    folder = Folder(dataset.path)
    for file in (PERSONAS, EGO_MAP, REPORT):
        if folder.find(file) is None:
            yield _finding("small-files", file, None, "", "missing", "warning")
    if not dataset.instances:
        yield _finding("small-files", "eval_instances", None, "", "no question; a run needs at least one", "warning")


def text_golds(world: World) -> Iterator[Finding]:
    """Yield one warning about all golds that are only text."""
    if reason := text_gold_warning(instance.gold for instance in world.dataset.instances):
        yield _finding("text-gold", "eval_instances", None, "", reason, "warning")


def references(world: World) -> Iterator[Finding]:
    """Yield agents and places that groups, events and personas name, but that do not exist."""
    dataset = world.dataset
    for group in dataset.groups.values():
        for member in group.members:
            if member not in dataset.agents:
                yield _finding("references", GROUPS, None, f"{group.group_id}.members", f"{member!r} is no agent")
    for event in dataset.events:
        for agent_id in event.visibility_mask:
            if agent_id not in dataset.agents:
                reason = f"{event.event_id!r}: {agent_id!r} is no agent"
                yield _finding("references", EVENTS, None, "visibility_mask", reason)
        if event.location_id is not None and dataset.locations and event.location_id not in dataset.locations:
            reason = f"{event.event_id!r}: {event.location_id!r} is not in locations.json"
            yield _finding("references", EVENTS, None, "location_id", reason)
    for agent_id in dataset.agents:
        for other in dataset.neighbors(agent_id):
            if other not in dataset.agents:
                yield _finding("references", PERSONAS, None, f"{agent_id}.social_neighbors", f"{other!r} is no agent")


def schedules_and_edges(world: World) -> Iterator[Finding]:
    """Yield faults in the rows of files that no run reads."""
    folder = Folder(world.dataset.path)
    for file, check in ((SCHEDULES, _schedule_fault), (EDGES, _edge_fault)):
        for line in folder.lines(file):
            try:
                check(load_object(line.data), world.dataset)
            except FieldError as error:
                yield _finding("schedules-and-edges", file, line.number, error.field, error.reason)


def _schedule_fault(row: Mapping[str, Any], dataset: Dataset) -> None:
    _known_agent(row, "agent_id", dataset)
    day = row.get("day_index")
    if not isinstance(day, int) or isinstance(day, bool) or day < 0:
        raise FieldError("day_index", f"{day!r}; a day index, 0 or more, is expected")


def _edge_fault(row: Mapping[str, Any], dataset: Dataset) -> None:
    _known_agent(row, "source", dataset)
    _known_agent(row, "target", dataset)
    weight = row.get("weight")
    if weight is not None and (not isinstance(weight, int | float) or isinstance(weight, bool)):
        raise FieldError("weight", f"{weight!r}; a number is expected")


def _known_agent(row: Mapping[str, Any], key: str, dataset: Dataset) -> None:
    if not isinstance(row.get(key), str):
        raise FieldError(key, "missing; an agent id is expected")
    if row[key] not in dataset.agents:
        raise FieldError(key, f"{row[key]!r} is no agent")


def ego_map(world: World) -> Iterator[Finding]:
    """Yield differences between ``ego_session_map.json`` and the participants of the corpus."""
    data = Folder(world.dataset.path).read_bytes(EGO_MAP)
    if data is None:
        return
    corpus = world.dataset.corpus
    try:
        ego_sessions = load_object(data)
    except FieldError as error:
        yield _finding("ego-map", EGO_MAP, None, error.field, error.reason)
        return
    for agent_id, session_ids in ego_sessions.items():
        if not isinstance(session_ids, list) or not all(isinstance(item, str) for item in session_ids):
            yield _finding("ego-map", EGO_MAP, None, agent_id, "a list of session ids is expected")
            continue
        agent_sessions = set(corpus.session_ids_of(agent_id))
        for session_id in sorted(set(session_ids) - agent_sessions):
            clause = "in which the agent takes no part" if session_id in corpus else "which is not in the corpus"
            yield _finding("ego-map", EGO_MAP, None, agent_id, f"names session {session_id!r}, {clause}")
        for session_id in sorted(agent_sessions - set(session_ids)):
            yield _finding("ego-map", EGO_MAP, None, agent_id, f"lacks session {session_id!r}, in which the agent is")
    people = {agent_id for agent_id in corpus.participants if not world.dataset.agents[agent_id].is_assistant}
    for agent_id in sorted(people - set(ego_sessions)):
        yield _finding("ego-map", EGO_MAP, None, agent_id, "missing, but the agent takes part in sessions")


# ------------------------------------------------------------------ questions


def questions(world: World) -> Iterator[Finding]:
    """Yield faults in a question's ego, asker, answerer or time."""
    dataset = world.dataset
    for instance in world.by_ego:
        ego = instance.ego_agent_id
        if ego not in dataset.corpus.participants:
            yield world.at(instance, "question", "ego_agent_id", f"{ego!r} takes part in no session")
        if instance.asker_agent_id in dataset.unknown_askers:
            reason = f"{instance.asker_agent_id!r} is no agent; an agent's id, or null for a stranger, is expected"
            yield world.at(instance, "question", "asker_agent_id", reason)
        answerer = instance.answerer_agent_id
        if answerer is not None and answerer not in (ego, f"assistant_{ego}"):
            reason = f"{answerer!r} is neither the ego nor its assistant"
            yield world.at(instance, "question", "answerer_agent_id", reason, "warning")
        asked_at = instance.query_timestamp
        if asked_at is not None and asked_at >= dataset.day_count:
            reason = f"{asked_at} is after the last day ({dataset.day_count - 1}), so it is asked on that one"
            yield world.at(instance, "question", "metadata.query_timestamp", reason, "warning")


def readable(world: World) -> Iterator[Finding]:
    """Yield the rows that could not be read."""
    for problem in world.dataset.problems:
        yield Finding("unusable-row", "error", problem)


def facts_readable(world: World) -> Iterator[Finding]:
    """Yield rows of ``facts.jsonl`` that cannot be read, or whose session or turn does not exist."""
    corpus = world.dataset.corpus
    for fact in world.facts:
        if fact.session_id not in corpus:
            reason = f"{fact.fact_id!r}: session {fact.session_id!r} does not exist in the corpus"
            yield _finding("facts", "facts.jsonl", None, "session_id", reason)
            continue
        try:
            turn_ids = {turn.turn_id for turn in world.session(fact.session_id).turns}
        except DatasetError as error:
            yield _finding("facts", "facts.jsonl", None, "session_id", str(error))
            continue
        if fact.turn_id not in turn_ids:
            reason = f"{fact.fact_id!r}: turn {fact.turn_id!r} is not in session {fact.session_id!r}"
            yield _finding("facts", "facts.jsonl", None, "turn_id", reason)
    for problem in world.fact_problems:
        yield Finding("facts", "error", problem)
