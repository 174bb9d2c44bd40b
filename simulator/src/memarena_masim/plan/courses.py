"""Which scene a thread tells: its first half, or to whoever heard that on an earlier day its second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memarena_masim.phrases.library import Library
from memarena_masim.phrases.scenes import BEATS, TALK_BEATS, Scene
from memarena_masim.plan.model import Thread
from memarena_masim.rng import Stream

GOES_ON = 0.35
"""Share of the threads that go on with a scene of an earlier day, where the people met that as often as a new one."""

Names = Mapping[str, Sequence[str]]
"""First names that no person in the world has, of a ``man`` and of a ``woman``."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A scene in one session: who told it to whom, the beat that a later talk goes on with, and the names in it."""

    narrator: str
    listener: str
    scene: str
    beats: int
    names: tuple[tuple[str, str], ...] = ()

    @property
    def half(self) -> tuple[str, int]:
        """The scene and the beat that this talk ended with."""
        return self.scene, self.beats


@dataclass(slots=True)
class _Mind:
    """What one person knows of scenes."""

    whose: dict[str, set[str]] = field(default_factory=dict)
    """Who told each scene, as something of their own; the person too."""
    names: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Each name of a person only spoken of, and the tellers and scenes it came up in."""
    halves: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each half of a scene was told or heard, in whoever's words."""

    def told_by_others(self, narrator: str) -> set[str]:
        """Scenes that somebody else than ``narrator`` told as something of their own."""
        return {scene for scene, tellers in self.whose.items() if len(tellers) > 1 or narrator not in tellers}


_NOTHING: Counter[tuple[str, int]] = Counter()


@dataclass(slots=True)
class Courses:
    """How far each teller came with each scene before each listener, by the last midnight."""

    library: Library
    pool: Names
    key: str
    """Of the world's random streams."""
    _told: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    _names: dict[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Names of the people in each teller's scenes."""
    _minds: dict[str, _Mind] = field(default_factory=dict)
    _today: set[tuple[str, str, str]] = field(default_factory=set)
    _names_today: dict[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    _heard_today: dict[str, set[str]] = field(default_factory=dict)
    """Names that came up before each person on the day."""
    _halves_today: dict[str, Counter[tuple[str, int]]] = field(default_factory=dict)
    """How often each half of a scene came up before each person on the day."""

    def begin_day(self) -> None:
        """Start from what is committed."""
        self._today, self._names_today, self._heard_today, self._halves_today = set(), {}, {}, {}

    def commit(self, tellings: Sequence[Telling]) -> None:
        """Midnight: what was told on the day is known."""
        for telling in tellings:
            beats = self._told.setdefault((telling.narrator, telling.listener), {})
            beats[telling.scene] = max(beats.get(telling.scene, 0), telling.beats)
            self._names[telling.narrator, telling.scene] = telling.names
            for person in (telling.narrator, telling.listener):
                mind = self._minds.setdefault(person, _Mind())
                mind.whose.setdefault(telling.scene, set()).add(telling.narrator)
                mind.halves[telling.half] += 1
                for _, name in telling.names:
                    mind.names.setdefault(name, set()).add((telling.narrator, telling.scene))

    def assign(self, stream: Stream, thread: Thread, narrator: str, listeners: Sequence[str]) -> Thread:
        """``thread`` with a scene: of those that can be told, one that its people have met least."""
        begun = self._begun(narrator, listeners)
        people = (narrator, *listeners)
        scenes = tuple(self.library.scenes.values())
        fresh = self._fitting(scenes, narrator, listeners)
        possible = fresh or [scene for scene in scenes if self._new(scene.key, narrator, listeners)] or scenes
        least = self._least_met(stream, [scene.key for scene in possible], people, TALK_BEATS, thread.topic)
        if begun:
            next_half = self._least_met(stream, begun, people, BEATS)
            more = self._met(next_half, BEATS, people) - self._met(least, TALK_BEATS, people)
            if not fresh or more < 0 or (more == 0 and stream.chance(GOES_ON)):
                return self.telling(thread, narrator, listeners, self.library.scenes[next_half], TALK_BEATS)
        return self.telling(thread, narrator, listeners, self.library.scenes[least], 0)

    def _least_met(
        self, stream: Stream, keys: Sequence[str], people: Sequence[str], beats: int, topic: str = ""
    ) -> str:
        """Of some scenes, one whose half was met least by those present; of several, one of the topic if there is."""
        met = {key: self._met(key, beats, people) for key in keys}
        fewest = min(met.values())
        least = [key for key in keys if met[key] == fewest]
        return stream.pick([key for key in least if key.split(".")[0] == topic] or least)

    def _met(self, scene: str, beats: int, people: Sequence[str]) -> int:
        """How often some people met a half of a scene, as a sum."""
        return sum(
            self._mind(person).halves[scene, beats] + self._halves_today.get(person, _NOTHING)[scene, beats]
            for person in people
        )

    def telling(self, thread: Thread, narrator: str, listeners: Sequence[str], scene: Scene, first_beat: int) -> Thread:
        """``thread`` with ``scene``, which no other talk of the day tells to the same people, and with its names."""
        self._today |= {(narrator, listener, scene.key) for listener in listeners}
        names = self._given(narrator, scene.key)
        if names is None:
            names = self._names_today[narrator, scene.key] = self._draw(narrator, listeners, scene)
        beats = first_beat + TALK_BEATS
        met = max(self._met(scene.key, beats, [person]) for person in (narrator, *listeners))
        for person in (narrator, *listeners):
            self._heard_today.setdefault(person, set()).update(name for _, name in names)
            self._halves_today.setdefault(person, Counter())[scene.key, beats] += 1
        return Thread(scene.key.split(".")[0], thread.narrator, thread.turns, scene.key, first_beat, names, met)

    def _given(self, narrator: str, scene: str) -> tuple[tuple[str, str], ...] | None:
        return self._names.get((narrator, scene)) or self._names_today.get((narrator, scene))

    def _draw(self, narrator: str, listeners: Sequence[str], scene: Scene) -> tuple[tuple[str, str], ...]:
        """Names that are new to all of them if possible, and in any case to the teller's scenes."""
        stream = Stream(self.key, "names", narrator, scene.key)
        own = {name for (who, _), names in self._names_today.items() if who == narrator for _, name in names}
        people = (narrator, *listeners)
        known = [set(self._mind(person).names) | self._heard_today.get(person, set()) for person in people]
        used: set[str] = set()
        names = []
        for slot, sex in sorted(scene.people.items()):
            for avoided in (used.union(own, *known), used | own | self._own_names(narrator), used):
                free = [name for name in self.pool[sex] if name not in avoided]
                if free:
                    break
            name = stream.pick(free)
            used.add(name)
            names.append((slot, name))
        return tuple(names)

    def _own_names(self, narrator: str) -> set[str]:
        names = self._mind(narrator).names
        return {name for name, where in names.items() if any(teller == narrator for teller, _ in where)}

    def _mind(self, person: str) -> _Mind:
        return self._minds.get(person, _Mind())

    def _fitting(self, scenes: Sequence[Scene], narrator: str, listeners: Sequence[str]) -> list[Scene]:
        """Scenes that are news to the listeners, are no other's story among them, and name no namesake."""
        minds = [self._mind(person) for person in (narrator, *listeners)]
        others = set[str]().union(*(mind.told_by_others(narrator) for mind in minds))
        return [
            scene
            for scene in scenes
            if scene.key not in others
            and self._new(scene.key, narrator, listeners)
            and not any(
                self._mind(listener).names.get(name, set()) - {(narrator, scene.key)}
                for listener in listeners
                for _, name in self._given(narrator, scene.key) or ()
            )
        ]

    def _new(self, scene: str, narrator: str, listeners: Sequence[str]) -> bool:
        return not any(
            scene in self._told.get((narrator, listener), {}) or (narrator, listener, scene) in self._today
            for listener in listeners
        )

    def _begun(self, narrator: str, listeners: Sequence[str]) -> list[str]:
        """Scenes that all listeners heard the first half of alone."""
        beats_told_to = [self._told.get((narrator, listener), {}) for listener in listeners]
        return [
            key
            for key in beats_told_to[0]
            if all(each.get(key) == TALK_BEATS for each in beats_told_to)
            and not any((narrator, listener, key) in self._today for listener in listeners)
        ]


def tellings(threads: Sequence[Thread], people: Sequence[str]) -> list[Telling]:
    """What a session adds to the courses. ``people`` are its speakers' ids, the assistant last where there is one."""
    return [
        Telling(people[thread.narrator], listener, thread.scene, thread.first_beat + TALK_BEATS, thread.names)
        for thread in threads
        if thread.scene
        for index, listener in enumerate(people)
        if index != thread.narrator
    ]
