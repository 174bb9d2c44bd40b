"""Who knows which fact and from where. Changed only when a day is committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum

from memarena_dataset.values import DateValue

from memarena_masim.facts.values import SpokenValue
from memarena_masim.plan.wishes import Wish


class FactKind(str, Enum):
    """What sort of thing a fact is."""

    DETAIL = "detail"
    HAPPENING = "happening"
    FIND = "find"
    TIE = "tie"
    COMMUNITY = "community"
    """What the world itself holds: where a person lives or works, what a group is."""


class Role(str, Enum):
    """Why a fact is stated."""

    TELL = "tell"
    WISH = "wish"
    """The subject's second word on something told before: who may hear it now."""
    RETELL = "retell"
    RECALL = "recall"
    VERSION = "version"
    """A second person's version of a detail, changed: the conflict injection."""
    CHANGE = "change"
    """The subject's own new value, told to a person who knows the one that it replaces."""
    FATE = "fate"
    """A later word on a find that does not name it: the cross-session reference."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of the world. ``item`` is the thing it is about: an item, a happening, a source, a third person."""

    fact_id: str
    kind: FactKind
    subject: str
    attribute: str
    item: str
    value: SpokenValue
    category: str
    sensitive: str = ""
    guarded: bool = False
    """Reserved for permission questions: told with a wish for discretion."""
    happened: date | None = None
    fate: str = ""
    supersedes: str = ""
    """``fact_id`` of the value that this one replaces, "" if it is the first."""

    @property
    def theme_kind(self) -> str:
        """What sort of fact it is to the themes of a catalogue."""
        return self.attribute if self.kind in (FactKind.DETAIL, FactKind.COMMUNITY) else self.kind.value

    def is_over(self, today: date) -> bool:
        """Whether it is a detail whose date has passed: no person says of it any more that it is to come."""
        value = self.value.value
        return isinstance(value, DateValue) and self.kind is FactKind.DETAIL and value.date < today.isoformat()

    @property
    def about(self) -> str:
        """Attribute with its item, as ``facts.jsonl`` has it."""
        return f"{self.attribute}: {self.item}" if self.item else self.attribute


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact in a person's mouth: the unit of provenance."""

    statement_id: str
    fact: Fact
    role: Role
    speaker: str
    people: tuple[str, ...]
    """The humans in the session, the speaker among them."""
    session_id: str
    turn: int
    turns: int
    day: int
    value: SpokenValue
    wish: Wish
    place_id: str | None
    modality: str

    @property
    def turn_id(self) -> str:
        """Id of the turn in the corpus."""
        return turn_id(self.session_id, self.turn)


def turn_id(session_id: str, turn: int) -> str:
    """Id of a session's turn."""
    return f"{session_id}_t{turn:02d}"


@dataclass(slots=True)
class Knowledge:
    """Facts by who knows them. ``heard[agent][fact_id]`` lists the statements by which the agent learned it."""

    heard: dict[str, dict[str, list[StatedFact]]] = field(default_factory=dict)
    told: dict[str, dict[str, Fact]] = field(default_factory=dict)
    """Facts that a subject has told to anyone, by subject."""
    said: list[StatedFact] = field(default_factory=list)
    """All statements, in the order of days and sessions."""

    def commit(self, statements: list[StatedFact]) -> None:
        """Make a day's statements known. Called once per day, at midnight."""
        for stated in statements:
            self.said.append(stated)
            if stated.speaker == stated.fact.subject:
                self.told.setdefault(stated.fact.subject, {})[stated.fact.fact_id] = stated.fact
            for person in stated.people:
                if person != stated.speaker:
                    self.heard.setdefault(person, {}).setdefault(stated.fact.fact_id, []).append(stated)

    def facts_heard(self, agent: str) -> dict[str, list[StatedFact]]:
        """What an agent has heard from others by the last commit."""
        return self.heard.get(agent, {})
