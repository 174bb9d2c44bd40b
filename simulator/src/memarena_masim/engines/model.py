"""The interface of an engine: it takes planned days and returns the corpus lines of each day, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from memarena_masim.config import WorldConfig
from memarena_masim.plan.day import DayPlan
from memarena_masim.world.model import World


@dataclass(frozen=True, slots=True)
class Setting:
    """What holds on every day: the configuration and the world before its first day."""

    config: WorldConfig
    world: World


@dataclass(frozen=True, slots=True)
class DayWords:
    """A day that has words.

    ``lines`` are pieces of the corpus file, each of whole lines, in the order of the sessions. ``counts`` says what
    the engine had to do for them (empty where there is nothing to say); ``log`` has one row per thing worth noting.
    """

    day: int
    lines: Iterable[str]
    counts: Mapping[str, JsonValue]
    log: Sequence[Mapping[str, JsonValue]] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """How far an engine has come in this call. ``tokens`` counts those that a server reported, both ways."""

    sessions_done: int
    sessions_planned: int
    in_flight: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question that may be reworded.

    ``names`` must all stay, and so must one word of each of ``anchors``; ``sources`` are the texts of its evidence
    sessions, ``gives_away`` says whether a text states the gold.
    """

    question_id: str
    text: str
    names: tuple[str, ...]
    anchors: tuple[str, ...]
    sources: tuple[str, ...]
    gives_away: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Rewordings:
    """New wordings by question id (only those that hold), with counts of what became of all."""

    texts: Mapping[str, str]
    counts: Mapping[str, JsonValue]


class Engine(Protocol):
    """Puts plans into words. The plan decides who says what in which turn; an engine only words it."""

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """What must be the same for a killed generation to go on: name, and whatever else decides the words."""
        ...

    @property
    def run_info(self) -> Mapping[str, JsonValue]:
        """What varies between runs of the same engine, for ``run_info.json``."""
        ...

    @property
    def rewords(self) -> bool:
        """Whether ``reword`` can do anything."""
        ...

    def words(self, setting: Setting, plans: Iterator[DayPlan]) -> Iterator[DayWords]:
        """The days' words, in order. ``plans`` may be taken in advance: they need nothing of the words."""
        ...

    def reword(self, questions: Sequence[Question]) -> Rewordings:
        """Other wordings for questions; none from an engine that has no model."""
        ...
