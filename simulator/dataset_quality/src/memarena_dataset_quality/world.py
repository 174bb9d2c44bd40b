"""Reads a data set as the measures use it: sessions, planned statements and questions, in memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path

from memarena_dataset.checks.world import World as CheckedWorld
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.files import LOCATIONS, SCHEDULES, Folder
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Fact, Instance, Location, Session, Turn

from memarena_dataset_quality.errors import QualityError


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a person's day with one activity; hours from 0 to 24."""

    start_hour: float
    end_hour: float
    activity: str


@dataclass(frozen=True)
class World:
    """One data set in memory.

    ``facts`` is empty if the data set has no planned statements; ``names`` and ``locations`` are by id; ``blocks`` has
    an agent's day by (agent id, day index).
    """

    path: Path
    epoch: date
    day_count: int
    sessions: tuple[Session, ...]
    instances: tuple[Instance, ...]
    facts: tuple[Fact, ...]
    names: Mapping[str, str]
    locations: Mapping[str, Location]
    blocks: Mapping[tuple[str, int], tuple[Block, ...]]

    @cached_property
    def turns(self) -> Mapping[str, tuple[Turn, Session]]:
        """Return every turn with its session, by turn id."""
        return {turn.turn_id: (turn, session) for session in self.sessions for turn in session.turns}

    @cached_property
    def places(self) -> Mapping[str, float]:
        """Return the relative position of every turn in its session, by turn id: 0 for the first, 1 for the last."""
        return {
            turn.turn_id: number / max(1, len(session.turns) - 1)
            for session in self.sessions
            for number, turn in enumerate(session.turns)
        }

    @cached_property
    def projections(self) -> Mapping[str, tuple[Turn, ...]]:
        """Return the turns of each participant's sessions, in the order of time, by agent id."""
        turns_of: defaultdict[str, list[Turn]] = defaultdict(list)
        for session in sorted(self.sessions, key=lambda session: (session.start_time, session.session_id)):
            for person in dict.fromkeys(session.participants):
                turns_of[person].extend(session.turns)
        return {person: tuple(turns) for person, turns in turns_of.items()}

    def evidence(self, instance: Instance) -> tuple[tuple[Turn, Session], ...]:
        """Return the evidence turns of a question with their sessions, in the order of time."""
        turns = [self.turns[turn_id] for turn_id in instance.evidence_turn_ids]
        return tuple(sorted(turns, key=lambda pair: (pair[0].timestamp, pair[0].turn_id)))

    def day_of(self, t: float) -> date:
        """Return the calendar day of a time in simulated days."""
        return self.epoch + timedelta(days=int(t))

    def name(self, agent_id: str) -> str:
        """Return the display name of an agent."""
        return self.names.get(agent_id, agent_id)

    def texts(self) -> list[list[str]]:
        """Return the texts of the turns of each session."""
        return [[turn.text for turn in session.turns] for session in self.sessions]


def read_world(path: Path) -> World:
    """Read a data set folder.

    Raises:
        QualityError: the folder, its corpus or a row of it cannot be used.
    """
    try:
        with open_dataset(path) as dataset:
            checked = CheckedWorld(dataset)
            facts = checked.facts
            if checked.fact_problems:
                raise QualityError(f"{path}: {checked.fact_problems[0]}")
            return World(
                path=path,
                epoch=dataset.calendar_epoch,
                day_count=dataset.day_count,
                sessions=tuple(dataset.corpus.sessions()),
                instances=dataset.instances,
                facts=facts,
                names={agent_id: agent.name for agent_id, agent in dataset.agents.items()},
                locations=dict(dataset.locations),
                blocks=_blocks(path),
            )
    except DatasetError as error:
        raise QualityError(f"{path}: {error}") from error


def _blocks(path: Path) -> dict[tuple[str, int], tuple[Block, ...]]:
    """Read the schedules of a data set, by agent id and day. QualityError for a malformed line."""
    blocks: dict[tuple[str, int], tuple[Block, ...]] = {}
    for line in Folder(path).lines(SCHEDULES):
        try:
            row = json.loads(line.data)
            blocks[str(row["agent_id"]), int(row["day_index"])] = tuple(
                Block(float(slot["start_hour"]), float(slot["end_hour"]), str(slot["activity"]))
                for slot in row["slots"]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise QualityError(
                f"{path}: {SCHEDULES}:{line.number}: not a day of somebody's schedule: {error}"
            ) from error
    return blocks


def opening_hours(path: Path) -> dict[str, tuple[float, float]]:
    """Return (opening hour, closing hour) by location id, for locations that have them.

    Raises:
        QualityError: an hour is not a number.
    """
    data = Folder(path).read_bytes(LOCATIONS)
    if data is None:
        return {}
    rows = json.loads(data)
    entries: Sequence[object] = list(rows.values()) if isinstance(rows, dict) else rows
    hours: dict[str, tuple[float, float]] = {}
    for row in entries:
        if isinstance(row, dict) and "opens" in row and "closes" in row:
            try:
                hours[str(row["location_id"])] = (float(row["opens"]), float(row["closes"]))
            except (KeyError, TypeError, ValueError) as error:
                raise QualityError(f"{path}: {LOCATIONS}: opens and closes must be hours: {error}") from error
    return hours
