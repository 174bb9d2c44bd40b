"""Defines the interface of an engine, which turns planned days into lines of the corpus, in order."""

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
    """The input that is the same on every day: the configuration, and the world before its first day."""

    config: WorldConfig
    world: World


@dataclass(frozen=True, slots=True)
class DayWords:
    """The words of one day.

    ``lines`` are parts of the corpus file, each of complete lines, in the order of the sessions. ``counts`` are the
    engine's counts for the report (empty if it has none); ``log`` has one row per incident.
    """

    day: int
    lines: Iterable[str]
    counts: Mapping[str, JsonValue]
    log: Sequence[Mapping[str, JsonValue]] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """Progress of an engine in this call. ``tokens`` are prompt and completion tokens as a server reported them."""

    sessions_done: int
    sessions_planned: int
    in_flight: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question that may be reworded.

    A rewording must keep all ``names``, and a word of each of ``anchors``; ``sources`` are the texts of its evidence
    sessions, ``gives_away`` decides whether a text states the gold.
    """

    question_id: str
    text: str
    names: tuple[str, ...]
    anchors: tuple[str, ...]
    sources: tuple[str, ...]
    gives_away: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Rewordings:
    """Accepted wordings by question id, with counts of accepted and rejected ones."""

    texts: Mapping[str, str]
    counts: Mapping[str, JsonValue]


class Engine(Protocol):
    """Puts plans into words. The plan decides who says what in which turn; an engine only words it."""

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Return the settings that must be the same to resume a generation: the name, and all that decide the words."""
        ...

    @property
    def run_info(self) -> Mapping[str, JsonValue]:
        """Return what may vary between runs of the same engine, for ``run_info.json``."""
        ...

    @property
    def rewords(self) -> bool:
        """Whether ``reword`` can do anything."""
        ...

    def words(self, setting: Setting, plans: Iterator[DayPlan]) -> Iterator[DayWords]:
        """Yield the days' words, in order. ``plans`` may be read in advance: they do not depend on the words."""
        ...

    def reword(self, questions: Sequence[Question]) -> Rewordings:
        """Return other wordings for questions; none from an engine that has no model."""
        ...
