"""Defines typed, frozen records of a data set folder (released MemArena-L layout).

Rows keep fields that are not listed here (``extra="allow"``), so that a file read and written again loses nothing.
Times are floats in simulated days: the day index is the floor, the fraction the time of day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memarena_dataset.gold import Gold, Sharing

SUFFICIENT_TURNS_VERSION = 1
"""Version of the form of ``Instance.sufficient_turn_ids``; ``pipeline_report.json`` states that of a data set."""


class Row(BaseModel):
    """Base of all rows: frozen, unknown fields kept."""

    model_config = ConfigDict(frozen=True, extra="allow")


WORDINGS = ("plain", "other_name", "description")
"""How a generated question refers to its subject: by its name, by another name that people use, by a description."""


class Family(str, Enum):
    """The task families, named as the released files are."""

    CLOZE = "d5_cloze"
    METADATA = "d6_metadata"
    QA = "d7_qa"
    TEMPORAL = "d8_temporal"
    COUNTERFACTUAL = "d10_counterfactual"
    CONFLICT = "d1_conflict"
    ANAPHORA = "d2_anaphora"
    CONFABULATION = "d3_confabulation"
    PERMISSION = "d4_permission"
    WITNESS = "x1_witness"
    """Extension family, reported next to the paper's and never in an average."""


class Dimension(str, Enum):
    """The six dimensions of the paper; ``X1`` stands for extensions."""

    D1 = "D1"
    D2 = "D2"
    D3 = "D3"
    D4 = "D4"
    D5 = "D5"
    D6 = "D6"
    X1 = "X1"


DIMENSION_OF: Mapping[Family, Dimension] = {
    Family.CLOZE: Dimension.D1,
    Family.METADATA: Dimension.D2,
    Family.QA: Dimension.D3,
    Family.TEMPORAL: Dimension.D3,
    Family.COUNTERFACTUAL: Dimension.D3,
    Family.CONFLICT: Dimension.D4,
    Family.ANAPHORA: Dimension.D4,
    Family.CONFABULATION: Dimension.D5,
    Family.PERMISSION: Dimension.D6,
    Family.WITNESS: Dimension.X1,
}
"""The dimension of each family, for all programs (paper, table "paper-internal-dims")."""


class Turn(Row):
    """One utterance. ``timestamp`` in simulated days."""

    turn_id: str
    session_id: str = ""
    speaker_id: str
    listener_id: str | None = None
    text: str
    timestamp: float
    entities_mentioned: tuple[Any, ...] = ()
    extracted_facts: tuple[Any, ...] = ()
    metadata: Mapping[str, Any] = Field(default_factory=dict)


class Session(Row):
    """One conversation. ``start_time`` and ``end_time`` in simulated days; turns are in the order of speaking."""

    session_id: str
    participants: tuple[str, ...]
    turns: tuple[Turn, ...]
    start_time: float
    end_time: float
    location_id: str | None = None
    group_id: str | None = None
    role_name: str | None = None
    modality: str | None = None
    interest_domain: str | None = None
    session_type: str | None = None
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def day(self) -> int:
        """Day index on which the session starts."""
        return math.floor(self.start_time)


class Event(Row):
    """Something that happened. ``visibility_mask`` lists the agents who could see it."""

    event_id: str
    timestamp: float
    content: str
    event_type: str | None = None
    visibility_mask: tuple[str, ...] = ()
    category: str | None = None
    location_id: str | None = None
    interest_domain: str | None = None
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def day(self) -> int:
        """Day index on which the event happens."""
        return math.floor(self.timestamp)


class Agent(Row):
    """A person of the world. ``persona`` is free form; ``name`` is the display name."""

    agent_id: str
    persona: Any = None
    social_neighbors: Any = None
    person_impressions: Any = None

    @property
    def name(self) -> str:
        """Display name: the persona's ``name`` if it has one, else the slug in title case."""
        if isinstance(self.persona, Mapping):
            for key in ("name", "full_name", "display_name"):
                if isinstance(self.persona.get(key), str) and self.persona[key].strip():
                    return str(self.persona[key])
        return display_name_of(self.agent_id)

    @property
    def is_assistant(self) -> bool:
        """Whether this is the assistant on a person's device."""
        return is_assistant(self.agent_id)


class Group(Row):
    """A community: family, team, club."""

    group_id: str
    name: str = ""
    members: tuple[str, ...] = ()


class Location(Row):
    """A place."""

    location_id: str
    name: str = ""


class Fact(Row):
    """One planned statement of ``facts.jsonl``. A run never reads them; validate does."""

    fact_id: str
    subject: str
    attribute: str
    value: Any
    """A text, a number or a typed value."""
    level: str | None = None
    sharing: Sharing | None = None
    """Details of the statement's wish in addition to its level."""
    session_id: str
    turn_id: str
    speaker_id: str | None = None
    asked: bool = False  # words: a name of the file format
    scope: str | None = None
    """Statements speak of the same thing only if their scopes are equal, e.g. the day of a lunch."""
    supersedes: str | None = None
    """``fact_id`` that this statement replaces."""


class Instance(Row):
    """One question with its gold.

    ``query`` is the only thing that a backend ever sees of it, together with who asks and when.
    ``query_timestamp`` (simulated days) comes from ``metadata`` and is None where the file does not say.
    """

    instance_id: str
    family: Family
    query: str
    gold: Gold
    difficulty: str | None = None
    asker_agent_id: str | None = None
    answerer_agent_id: str | None = None
    ego_agent_id: str
    evidence_session_ids: tuple[str, ...] = ()
    evidence_turn_ids: tuple[str, ...] = ()
    sufficient_turn_ids: tuple[tuple[str, ...], ...] = ()
    """Groups of evidence turns: any turn of each group, together, suffice for the gold. Empty: all evidence is needed.
    """
    context_tier: str | None = None
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    query_timestamp: float | None = None

    @property
    def dimension(self) -> Dimension:
        """Dimension of the paper that the family counts for."""
        return DIMENSION_OF[self.family]

    @property
    def needed_turns(self) -> tuple[tuple[str, ...], ...]:
        """Groups of turns of which a prompt has to hold any turn each; without such groups every evidence turn."""
        return self.sufficient_turn_ids or tuple((turn_id,) for turn_id in self.evidence_turn_ids)


def is_assistant(agent_id: str) -> bool:
    """Whether an agent id names an assistant (``assistant_<agent>``)."""
    return agent_id.startswith("assistant_")


def display_name_of(agent_id: str) -> str:
    """Return the name for a slug: ``maya_chen`` is Maya Chen; ``assistant_maya_chen`` is Maya Chen's assistant."""
    if agent_id.startswith("assistant_"):
        return f"{display_name_of(agent_id.removeprefix('assistant_'))}'s assistant"
    return " ".join(part.capitalize() for part in agent_id.split("_") if part)
