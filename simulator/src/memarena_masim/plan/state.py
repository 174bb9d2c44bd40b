"""Records facts, the choice of what is stated, statements, and who knows which fact from which statements.

``Knowledge`` changes only by ``commit``, at midnight: a statement is known to its hearers from the next day on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum

from memarena_masim.facts.values import SpokenValue
from memarena_masim.plan.popularity import Theme
from memarena_masim.plan.wishes import SAYS_NOTHING, Wish
from memarena_masim.rng import Stream


class FactKind(str, Enum):
    """Kind of a fact: it decides how the fact is drawn and worded."""

    DETAIL = "detail"
    """A person's value for an attribute and an item: what they paid for the desk lamp."""
    HAPPENING = "happening"
    """What a person did on a day."""
    FIND = "find"
    """A thing that a person got from a source, and what became of it."""
    TIE = "tie"
    """Whether two people are friends."""
    COMMUNITY = "community"
    """A fact of the world's structure: where a person lives or works, a group's place, members and roles."""


class Role(str, Enum):
    """Why a fact is stated in a session."""

    TELL = "tell"
    """A person states a fact of their own or of a group of theirs."""
    WISH = "wish"
    """The subject states the fact again with another wish for discretion: who may hear it now."""
    RETELL = "retell"
    """Another person passes on what they heard."""
    RECALL = "recall"
    """A person states to their assistant, which asks for it, what they heard or stated on an earlier day."""
    VERSION = "version"
    """Another person states a detail with a changed value: an injected conflict."""
    CHANGE = "change"
    """The subject states a new value to a person who knows the old one."""
    FATE = "fate"
    """The subject says later what became of a find, without naming it: a reference to an earlier session."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of the world. ``item`` is what it is about: an item, a happening, a find's source, or a person's id."""

    fact_id: str
    kind: FactKind
    subject: str
    attribute: str
    item: str
    value: SpokenValue
    category: str
    sensitive: str = ""
    guarded: bool = False
    """Whether it is stated only with a wish for discretion, for permission questions."""
    happened: date | None = None
    """Day of a happening; None for other kinds."""
    fate: str = ""
    """For a find, what became of it; for a happening, what was done, in the past tense."""
    supersedes: str = ""
    """``fact_id`` of the fact that this one replaces; "" if none."""

    @property
    def theme_kind(self) -> str:
        """Return the kind by which a catalogue's themes list the fact."""
        return self.attribute if self.kind in (FactKind.DETAIL, FactKind.COMMUNITY) else self.kind.value

    @property
    def about(self) -> str:
        """Return attribute and item as ``facts.jsonl`` has them."""
        return f"{self.attribute}: {self.item}" if self.item else self.attribute


@dataclass(frozen=True, slots=True)
class Choice:
    """A statement to be made: ``value`` is as stated, which for a version differs from the fact's."""

    fact: Fact
    speaker: str
    role: Role
    value: SpokenValue
    wish: Wish = SAYS_NOTHING


@dataclass(frozen=True, slots=True)
class Occasion:
    """An occasion for ``speaker`` to state a fact of ``theme`` to ``listeners`` (empty: to their assistant)."""

    stream: Stream
    day: int
    speaker: str
    listeners: tuple[str, ...]
    theme: Theme

    @property
    def hearers(self) -> tuple[str, ...]:
        """Return who hears the fact: the listeners, or the speaker's assistant."""
        return self.listeners or (f"assistant_{self.speaker}",)

    def fits(self, kind: str) -> bool:
        """Whether facts of a kind (``Fact.theme_kind``) are of the theme."""
        return self.theme is None or kind in self.theme

    def choice(self, fact: Fact, role: Role = Role.TELL) -> Choice:
        """Return the choice that the speaker states ``fact`` as it is."""
        return Choice(fact, self.speaker, role, fact.value)


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A statement: one fact that one speaker states in one turn. The unit of provenance."""

    statement_id: str
    fact: Fact
    role: Role
    speaker: str
    people: tuple[str, ...]
    """Ids of the humans in the session, including the speaker."""
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
        """Return the id of the turn in the corpus."""
        return turn_id(self.session_id, self.turn)


def turn_id(session_id: str, turn: int) -> str:
    """Return the id of a session's turn, by its index."""
    return f"{session_id}_t{turn:02d}"


@dataclass(slots=True)
class Knowledge:
    """Facts by the people who know them.

    ``heard[agent][fact_id]`` lists the statements by which the agent learned the fact, oldest first.
    """

    heard: dict[str, dict[str, list[StatedFact]]] = field(default_factory=dict)
    told: dict[str, dict[str, Fact]] = field(default_factory=dict)
    """Facts that a subject has stated to anyone, by subject and fact id."""
    said: list[StatedFact] = field(default_factory=list)
    """All statements, in the order of days and sessions."""

    def commit(self, statements: list[StatedFact]) -> None:
        """Make a day's statements known to all who were present. Called once per day, at midnight."""
        for stated in statements:
            self.said.append(stated)
            if stated.speaker == stated.fact.subject:
                self.told.setdefault(stated.fact.subject, {})[stated.fact.fact_id] = stated.fact
            for person in stated.people:
                if person != stated.speaker:
                    self.heard.setdefault(person, {}).setdefault(stated.fact.fact_id, []).append(stated)

    def facts_heard(self, agent: str) -> dict[str, list[StatedFact]]:
        """Return the statements that an agent heard from others up to the last commit, by fact id."""
        return self.heard.get(agent, {})

    def hearers(self, fact_id: str) -> int:
        """Return how many people heard a fact from others up to the last commit."""
        return sum(fact_id in heard for heard in self.heard.values())
