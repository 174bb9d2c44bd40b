"""Defines the records of the gate: who may know what, by whose wish, from when, and which turn states it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

# Confidence that a wish was read correctly, 0 to 1.
CERTAIN = 0.9
PROBABLE = 0.75
DOUBTFUL = 0.5
SURE = 0.7
"""Threshold: below it a wish does not decide, and the default for unclear cases applies."""


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
    """Not stated, as in "the family", "friends"."""


@dataclass(frozen=True, slots=True)
class Group:
    """People by their relation to a person: ``kind`` is a kind of relation, or the stem of a role (``contractor``)."""

    kind: str
    whose: Whose = Whose.OPEN


@dataclass(frozen=True, slots=True)
class Audience:
    """A set of people: everyone, or the named people and the members of groups, less the exceptions."""

    everyone: bool = False
    names: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    except_names: tuple[str, ...] = ()
    except_groups: tuple[Group, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it includes no person at all."""
        return not (self.everyone or self.names or self.groups)


@dataclass(frozen=True, slots=True)
class Wish:
    """One statement of who may know something, as the grammar reads it, before the turns that it is about are known."""

    effect: Effect
    audience: Audience
    others_excluded: bool = False
    """For a wish to share: whether only its audience may know ("only Ann")."""
    valid_from: date | None = None
    valid_until: date | None = None
    """The first day on which the wish no longer holds."""
    condition: str = ""
    """A condition other than a date, quoted from the text ("once it is official")."""
    confidence: float = CERTAIN
    reported_by: str = ""
    """Name of the person whose wish the speaker passes on; empty for the speaker's own wish."""
    topic: tuple[str, ...] = ()
    """Stems of the words that name the topic; empty if the sentence only points to it ("this", "that")."""
    values: tuple[str, ...] = ()
    """For a deletion: the codes and quoted phrases to forget, in lower case."""


@dataclass(frozen=True, slots=True)
class Record:
    """A wish with the turns that it is about.

    ``turn_ids`` are the turns that it protects or releases, ``source_turn_id`` is the turn that states it.
    ``subject_id`` is the participant whom it is about, empty if no participant has the name ``subject``. ``own``:
    whether that person states it. ``origin``: what read the wish, ``rules`` or ``model``.
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
