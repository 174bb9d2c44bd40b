"""Defines the records of a day's plan: sessions, the threads of a talk, statements of facts.

A plan decides who states which fact in which turn, before any text is written. Engines put it into words; questions and
their gold are derived from it, never from the text (docs/adr/0014-plan-before-text.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Kind(str, Enum):
    """Kinds of sessions. The first four are between people, the others between a person and the assistant."""

    TOPIC = "routine_topic"
    EVENT = "event"
    """About an event that all of the speakers could see."""
    ENCOUNTER = "encounter"
    """In person, where both are or can go."""
    REMOTE = "remote"
    NARRATION = "activity_narration"
    REFLECTION = "memory_reflection"
    """Looks back at an earlier talk, and tells the second half of its scene."""
    PROBE = "memory_probe"
    """The assistant asks its owner for what the owner heard or stated before."""

    @property
    def with_assistant(self) -> bool:
        """Whether one side is an assistant."""
        return self in (Kind.NARRATION, Kind.REFLECTION, Kind.PROBE)


@dataclass(frozen=True, slots=True)
class Speaker:
    """A participant of a session, and how they speak.

    ``leaning`` decides which wording of a phrase the speaker prefers (``phrases/grammar.py``). ``pace`` scales the
    length of turns, ``fillers`` is the share of sentences with filler words, ``asking`` scales the share of turns that
    end with a question.
    """

    agent_id: str
    first_name: str
    leaning: int
    pace: float
    fillers: float
    assistant: bool = False
    asking: float = 1.0


class Invite(str, Enum):
    """How the turn before a statement asks for it."""

    NONE = ""
    """Not at all: its speaker brings it up."""
    OPEN = "open"
    """Openly: what else is new."""
    THING = "thing"
    """By its thing, of which the listeners heard on an earlier day."""


class FrameParts(NamedTuple):
    """The parts of a frame, the name of the bank rule that words a statement: ``say.price.own``."""

    form: str
    """``say``, or ``change`` for a new value of a fact."""
    attribute: str
    person: str
    """``own`` if the speaker is the fact's subject, else ``told``."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact that is stated in one turn.

    ``frame`` names the bank rule that words it (``say.price.own``), ``slots`` binds its values. ``level`` is the form
    of the wish for discretion in the same turn (``level.<form>`` words it), "" for none. ``prompt`` names the rule of
    the other speaker's question in the turn before, "" for none. ``more`` has the indices of the lines that its speaker
    adds, ``later`` of those that follow in their next turn, ``opinion`` the index of the next speaker's opinion (None:
    none); see ``plan/lines.py``. ``invite`` says how the turn before asks for it.
    """

    statement_id: str
    fact_id: str
    turn: int
    frame: str
    slots: tuple[tuple[str, str], ...]
    level: str = ""
    prompt: str = ""
    more: tuple[int, ...] = ()
    later: tuple[int, ...] = ()
    opinion: int | None = None
    invite: Invite = Invite.NONE

    @property
    def frame_parts(self) -> FrameParts:
        """Return the three parts of ``frame``."""
        return FrameParts(*self.frame.split("."))

    @property
    def is_new(self) -> bool:
        """Whether it states a new fact of the speaker's own: no other value, later word on a find, or second wish."""
        form, attribute, person = self.frame_parts
        second_wish = "." in self.level
        return person == "own" and form == "say" and attribute != "fate" and not second_wish


NEWS = "news of each other"
"""The topic of the thread in which facts are stated."""


@dataclass(frozen=True, slots=True)
class Thread:
    """Consecutive turns about one topic: a scene told by ``narrator`` (index into ``speakers``), or news (``NEWS``)."""

    topic: str
    narrator: int
    turns: int
    scene: str = ""
    """Key of the scene that is told; "" in a thread for news."""
    first_beat: int = 0
    """Index of the first beat that is told: above 0 if the listeners heard the earlier ones on another day."""
    names: tuple[tuple[str, str], ...] = ()
    """Names of the people in the scene, as (slot, name): the same whenever this person tells it."""
    met: int = 0
    """How often this half of the scene was met before: the maximum over the people present."""


@dataclass(frozen=True, slots=True)
class EventTalk:
    """A session's event in words. ``told`` names people as they call each other.

    ``clauses`` has one clause for each speaker, in the first and second person; asterisks enclose the words that an
    answer can take up. ``ours`` is true for an event of the speakers or their group, false for news known to all.
    """

    event_id: str
    told: str
    clauses: tuple[str, ...]
    ours: bool


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A planned session, without its text. ``start`` is in simulated days since the world's first midnight."""

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
    """The event that the speakers talk about; None if the session is not about one."""
    relation: str = ""
    """Relation between the speakers (a value of RELATION_KINDS); "" if it differs between pairs."""
    looks_back: tuple[str, str] = ("", "")
    """For a reflection on an earlier session: the other person's name, and the day in words; else two empty texts."""
    sub_kind: str = ""
    words_per_turn: float = 58.0

    @property
    def event_ids(self) -> tuple[str, ...]:
        """Return the ids of the events that triggered the session: one or none."""
        return (self.event.event_id,) if self.event else ()

    @property
    def topic(self) -> str:
        """Return the topic of the first thread that tells a scene."""
        return next(thread.topic for thread in self.threads if thread.topic != NEWS)

    def in_news(self, turn: int) -> bool:
        """Whether a turn is in a thread for news."""
        first = 0
        for thread in self.threads:
            first += thread.turns
            if turn < first:
                return thread.topic == NEWS
        return False

    def speaker_index(self, turn: int) -> int:
        """Return the index of the speaker of a turn; the speakers take turns in their order."""
        first = len(self.speakers) - 1 if self.kind.with_assistant else self.threads[0].narrator
        return (first + turn) % len(self.speakers)

    @property
    def turn_count(self) -> int:
        """Return the number of turns."""
        return sum(thread.turns for thread in self.threads)
