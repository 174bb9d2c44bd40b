"""Holds the state of a talk while its turns are written, and the scene of a thread as this teller tells it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from memarena_masim.config import WorldConfig
from memarena_masim.phrases.library import Library
from memarena_masim.phrases.scenes import Scene
from memarena_masim.plan.model import SessionPlan, Statement, Thread
from memarena_masim.realization.spoken import SpokenTurn
from memarena_masim.rng import Stream

_TO_YOU = {"I": "you", "we": "you", "I'm": "you're", "I was": "you were", "me": "you", "my": "your", "our": "your"}
_FIRST_PERSON = re.compile(r"\b(?:I'm|I was|I|we|me|my|our)\b")


@dataclass(frozen=True, slots=True)
class SceneTelling:
    """A thread's scene in this session: its values, and the text of its slots by speaker."""

    scene: Scene
    thread: Thread
    values: Mapping[str, str]
    kin: str

    def thing(self, teller: bool) -> str:
        """Return the scene's thing as its teller names it, or as the person spoken to does."""
        return self.scene.thing if teller else _to_you(self.scene.thing)

    def slots(self, teller: bool) -> dict[str, str]:
        """Return the slots of a line of the scene."""
        return {**self.values, "kin": self.kin if teller else _to_you(self.kin)}


@dataclass(slots=True)
class Talk:
    """A session while its turns are written: the turns so far, and what the next turn has to know of them."""

    config: WorldConfig
    plan: SessionPlan
    stream: Stream
    library: Library
    turns: list[SpokenTurn] = field(default_factory=list)
    stated: Statement | None = None
    """The statement of the turn before; None if it stated nothing."""
    invited: Statement | None = None
    """The statement for which the turn before asked; None if it asked for none."""
    telling: SceneTelling | None = None
    """The latest scene of the talk; None before the first."""
    said: set[str] = field(default_factory=set)
    """Sentences of the frame bank, of reactions and of third persons that were already said."""
    drawn: set[int] = field(default_factory=set)
    """Ids of the lines that these sentences are from."""

    @property
    def heard(self) -> str:
        """Return the text of all turns so far."""
        return " ".join(turn.text for turn in self.turns)


def _to_you(text: str) -> str:
    """Return a noun phrase of the first person as the person spoken to says it: ``my`` becomes ``your``."""
    return _FIRST_PERSON.sub(lambda match: _TO_YOU[match.group()], text)
