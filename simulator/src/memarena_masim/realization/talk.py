"""What a talk has come to while it is written, and a thread's scene in it."""

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
    """A thread's scene in this session: who tells it, its values, and the text of its slots by speaker."""

    scene: Scene
    thread: Thread
    values: Mapping[str, str]
    kin: str

    def thing(self, teller: bool) -> str:
        """The scene's thing in the mouth of its teller, or of anybody else."""
        return self.scene.thing if teller else _to_you(self.scene.thing)

    def slots(self, teller: bool) -> dict[str, str]:
        """Slots of a line of the scene."""
        return {**self.values, "kin": self.kin if teller else _to_you(self.kin)}


@dataclass(slots=True)
class Talk:
    config: WorldConfig
    plan: SessionPlan
    stream: Stream
    library: Library
    turns: list[SpokenTurn] = field(default_factory=list)
    stated: Statement | None = None
    """The fact of the turn before."""
    invited: Statement | None = None
    """The fact that the turn before asked for."""
    telling: SceneTelling | None = None
    """The scene that was told so far."""
    said: set[str] = field(default_factory=set)
    """Sentences from round the scenes and of third persons that were said."""

    @property
    def heard(self) -> str:
        """What was said so far."""
        return " ".join(turn.text for turn in self.turns)


def _to_you(text: str) -> str:
    """A noun phrase of the first person in the mouth of the one spoken to."""
    return _FIRST_PERSON.sub(lambda match: _TO_YOU[match.group()], text)
