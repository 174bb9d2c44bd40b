"""What the gate keeps of the talk: who may know what, by whose wish, from when, and where that was said."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

CERTAIN = 0.9
PROBABLE = 0.75
DOUBTFUL = 0.5
"""Below :data:`SURE` a wish does not decide: the default for what is unclear does."""
SURE = 0.7


class Answer(str, Enum):
    """Whether something applies to an asker."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Effect(str, Enum):
    """What a record asks for."""

    SHARE = "share"
    WITHHOLD = "withhold"
    DELETE = "delete"


class Whose(str, Enum):
    """Whose family, friends or colleagues a group is."""

    SPEAKER = "speaker"
    OWNER = "owner"
    OPEN = "open"
    """Not stated: the family, friends."""


@dataclass(frozen=True, slots=True)
class Group:
    """People by what they are to a person: ``kind`` is a kind of relation, or a word of a role (``contractor``)."""

    kind: str
    whose: Whose = Whose.OPEN


@dataclass(frozen=True, slots=True)
class Audience:
    """A set of people: everyone, or those who are named or in a group, less the exceptions."""

    everyone: bool = False
    names: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    except_names: tuple[str, ...] = ()
    except_groups: tuple[Group, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it holds no person at all."""
        return not (self.everyone or self.names or self.groups)


@dataclass(frozen=True, slots=True)
class Wish:
    """One statement of who may know something, as the grammar reads it, before it is known what it is about."""

    effect: Effect
    audience: Audience
    others_excluded: bool = False
    """Whether a wish to share is for its audience alone."""
    valid_from: date | None = None
    valid_until: date | None = None
    """The first day on which it no longer holds."""
    condition: str = ""
    """A condition that is no date, in its own words ("once it is official")."""
    confidence: float = CERTAIN
    reported_by: str = ""
    """The person whose wish it is, where the speaker passes on another person's."""
    topic: tuple[str, ...] = ()
    """Stems of what the sentence says it is about; empty where it points ("this", "that")."""
    values: tuple[str, ...] = ()
    """Of a deletion: what is to be forgotten, letter by letter."""


@dataclass(frozen=True, slots=True)
class Record:
    """A wish that is tied to what was said.

    ``turn_ids`` are the turns that it protects or releases, ``source_turn_id`` the turn that states it. ``own`` is true
    where the person whom it is about (``subject_id`` among participants, else ``subject``) states it.
    """

    record_id: str
    wish: Wish
    subject: str
    subject_id: str
    stated_by: str
    own: bool
    said_at: datetime
    day_index: int
    session_id: str
    source_turn_id: str
    turn_ids: tuple[str, ...]
    origin: str = "rules"
