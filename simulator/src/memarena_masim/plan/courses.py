"""Which scene a thread tells, and from which beat: whoever heard the beginning of a scene hears how it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memarena_masim.phrases.library import Library
from memarena_masim.phrases.scenes import Scene
from memarena_masim.plan.model import Thread
from memarena_masim.rng import Stream

GOES_ON = 0.35
"""Share of the threads that go on with a scene of an earlier day, where there is one."""
LEAST_LEFT = 2
"""Beats that a scene must have left to be gone on with."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A scene in one session: who told it to whom, and how many of its beats are told by then."""

    narrator: str
    listener: str
    scene: str
    beats: int


@dataclass(slots=True)
class Courses:
    """How far each teller came with each scene before each listener, by the last midnight."""

    library: Library
    _told: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    _today: set[tuple[str, str, str]] = field(default_factory=set)

    def begin_day(self) -> None:
        """Start from what is committed."""
        self._today = set()

    def commit(self, tellings: Sequence[Telling]) -> None:
        """Midnight: what was told on the day is known."""
        for one in tellings:
            told = self._told.setdefault((one.narrator, one.listener), {})
            told[one.scene] = max(told.get(one.scene, 0), one.beats)

    def assign(
        self, stream: Stream, thread: Thread, narrator: str, listeners: Sequence[str], taken: frozenset[str]
    ) -> Thread:
        """``thread`` with a scene that is not in ``taken``."""
        begun = self._begun(narrator, listeners, taken, max(LEAST_LEFT, beats_in(thread.turns, len(listeners) + 1)))
        if begun and stream.chance(GOES_ON):
            key, beats = stream.pick(begun)
            return self._telling(thread, narrator, listeners, self.library.scenes[key], beats)
        scenes = [one for one in self.library.topics[thread.topic].scenes if one.key not in taken]
        if not any(self._new(one.key, narrator, listeners) for one in scenes):
            scenes += [one for one in self.library.scenes.values() if one.key not in taken]
        fresh = [one for one in scenes if self._new(one.key, narrator, listeners)]
        scene = stream.pick(fresh or scenes)
        return self._telling(thread, narrator, listeners, scene, 0)

    def note(self, narrator: str, listeners: Sequence[str], scene: str) -> None:
        """A scene is told today, so that no other talk of the day tells it to the same people."""
        self._today |= {(narrator, listener, scene) for listener in listeners}

    def _telling(self, thread: Thread, narrator: str, listeners: Sequence[str], scene: Scene, beats: int) -> Thread:
        self.note(narrator, listeners, scene.key)
        return Thread(scene.key.split(".")[0], thread.narrator, thread.turns, scene.key, beats)

    def _new(self, scene: str, narrator: str, listeners: Sequence[str]) -> bool:
        return not any(
            scene in self._told.get((narrator, listener), {}) or (narrator, listener, scene) in self._today
            for listener in listeners
        )

    def _begun(
        self, narrator: str, listeners: Sequence[str], taken: frozenset[str], needed: int
    ) -> list[tuple[str, int]]:
        """Scenes that all listeners heard the same beats of, with so many beats left to tell."""
        first, *others = (self._told.get((narrator, listener), {}) for listener in listeners)
        return [
            (key, beats)
            for key, beats in first.items()
            if all(other.get(key) == beats for other in others)
            and key not in taken
            and not any((narrator, listener, key) in self._today for listener in listeners)
            and len(self.library.scenes[key].beats) - beats >= needed
        ]


def beats_in(turns: int, people: int) -> int:
    """The most beats that a thread of so many turns comes to."""
    return -(-turns // people)


def tellings(threads: Sequence[Thread], first_speaker: int, people: Sequence[str]) -> list[Telling]:
    """What a session adds to the courses. ``people`` are its speakers' ids, the assistant last where there is one."""
    found, speaker, count = [], first_speaker, len(people)
    for thread in threads:
        turns = sum((speaker + place) % count == thread.narrator for place in range(thread.turns))
        narrator = people[thread.narrator]
        found += [
            Telling(narrator, listener, thread.scene, thread.first_beat + turns)
            for listener in people
            if listener != narrator
        ]
        speaker = (speaker + thread.turns) % count
    return found
