"""Records of the plan: sessions, threads of conversation, statements of facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Kind(str, Enum):
    """Kinds of sessions. The first four are between people, the others between a person and the assistant."""

    TOPIC = "routine_topic"
    EVENT = "event"
    ENCOUNTER = "encounter"
    REMOTE = "remote"
    NARRATION = "activity_narration"
    REFLECTION = "memory_reflection"
    PROBE = "memory_probe"

    @property
    def with_assistant(self) -> bool:
        """Whether one side is an assistant."""
        return self in (Kind.NARRATION, Kind.REFLECTION, Kind.PROBE)


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who speaks, and how.

    ``pace`` scales the length of turns, ``fillers`` is the share of sentences with filler, ``asking`` scales the share
    of turns that end with a question.
    """

    agent_id: str
    first_name: str
    leaning: int
    pace: float
    fillers: float
    assistant: bool = False
    asking: float = 1.0


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact said in one turn.

    ``frame`` names the bank rule that words it (``say.price.own``), ``slots`` binds its values. ``level`` is the form
    of the wish for discretion in the same turn (``level.<form>`` words it), "" for none. ``prompt`` names a rule that
    the other side says in the turn before, "" for none. ``more`` are the lines that its speaker adds, and ``opinion``
    what the next one thinks of it: indices of what none of those present has met.
    """

    statement_id: str
    fact_id: str
    turn: int
    frame: str
    slots: tuple[tuple[str, str], ...]
    level: str = ""
    prompt: str = ""
    more: tuple[int, ...] = ()
    opinion: int | None = None


NEWS = "news of each other"
"""The topic of the thread in which facts are stated."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A stretch of talk about one topic, told by one speaker (index into ``speakers``); or one for news (``NEWS``)."""

    topic: str
    narrator: int
    turns: int
    scene: str = ""
    """Key of the scene that is told; "" in a thread for news."""
    first_beat: int = 0
    """The first beat that is told: above 0 where the listeners heard the ones before on an earlier day."""
    names: tuple[tuple[str, str], ...] = ()
    """Names of the people in the scene, by slot: the same in every telling by one person."""
    met: int = 0
    """How often this half of the scene was met before by whoever of those present met it most."""


@dataclass(frozen=True, slots=True)
class EventTalk:
    """What a session's event is in words. ``told`` names people as they call each other.

    ``clauses`` are by speaker, in the first and second person, with what can be taken up between asterisks; ``ours``
    says that it is no news to all but something that the speakers, or a group of theirs, went through.
    """

    event_id: str
    told: str
    clauses: tuple[str, ...]
    ours: bool


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A session before it has words. Times in simulated days."""

    session_id: str
    kind: Kind
    modality: str
    day: int
    start: float
    speakers: tuple[Speaker, ...]
    threads: tuple[Thread, ...]
    statements: tuple[Statement, ...]
    weekday: str
    daypart: str
    weather: str
    place_id: str | None = None
    place_name: str = ""
    names_place: bool = False
    """Whether the first turn names the place."""
    group_id: str | None = None
    role_name: str | None = None
    event: EventTalk | None = None
    """What the speakers have in common to talk of; only in sessions about an event."""
    relation: str = ""
    """What all speakers are to each other (a value of RELATION_KINDS); "" where that differs from pair to pair."""
    looks_back: tuple[str, str] = ("", "")
    """For a reflection: the other person's name and the words for the day of the session looked back at."""
    sub_kind: str = ""
    words_per_turn: float = 58.0
    tags: tuple[str, ...] = field(default=())

    @property
    def event_ids(self) -> tuple[str, ...]:
        """Ids of the events that set the session off."""
        return (self.event.event_id,) if self.event else ()

    @property
    def topic(self) -> str:
        """The topic of the scene."""
        return next(thread.topic for thread in self.threads if thread.topic != NEWS)

    def speaker_index(self, turn: int) -> int:
        """Who speaks in a turn: index into the speakers, who take turns in their order."""
        first = len(self.speakers) - 1 if self.kind.with_assistant else self.threads[0].narrator
        return (first + turn) % len(self.speakers)

    @property
    def turn_count(self) -> int:
        """Number of turns."""
        return sum(thread.turns for thread in self.threads)
