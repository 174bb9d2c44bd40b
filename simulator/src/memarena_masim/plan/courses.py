"""Chooses the scene for each thread of a talk.

A scene (``phrases/scenes.py``) has two halves of TALK_BEATS beats each; a beat is one turn of the narrator. A talk
tells one half: the first, or the second to listeners who heard the first on an earlier day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memarena_masim.phrases.library import Library
from memarena_masim.phrases.scenes import BEATS, TALK_BEATS, Scene
from memarena_masim.plan.model import Thread
from memarena_masim.plan.threads import second_story_beats
from memarena_masim.rng import Stream

GOES_ON = 0.35
"""Chance that a thread continues a scene of an earlier day whose second half was met as often as a new scene."""

Names = Mapping[str, Sequence[str]]
"""First names that no person of the world has, by sex: ``man`` and ``woman``."""


@dataclass(frozen=True, slots=True)
class Telling:
    """Half a scene as one narrator tells it to one listener in one session (both are agent ids)."""

    narrator: str
    listener: str
    scene: str
    beats: int
    """Beats of the scene that were told so far: the index of the beat with which a later talk continues."""
    names: tuple[tuple[str, str], ...] = ()
    """Names of the people in the scene, as (slot, first name)."""

    @property
    def half(self) -> tuple[str, int]:
        """Return the key of the half that was told, whole or its beginning: the scene and the beats up to its end."""
        return self.scene, -(-self.beats // TALK_BEATS) * TALK_BEATS


@dataclass(slots=True)
class _Heard:
    """The scenes and names that one person told or heard, up to the last midnight."""

    whose: dict[str, set[str]] = field(default_factory=dict)
    """Narrators of each scene that the person heard or told (who is then a narrator too), by scene."""
    names: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """For each invented name, the (narrator, scene) pairs in which the person heard or told it."""
    halves: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often the person told or heard each half of a scene, from any narrator."""

    def told_by_others(self, narrator: str) -> set[str]:
        """Return the scenes that the person knows from a narrator other than ``narrator``."""
        return {scene for scene, tellers in self.whose.items() if len(tellers) > 1 or narrator not in tellers}


_NOTHING: Counter[tuple[str, int]] = Counter()
_HEARD_NOTHING = _Heard()


@dataclass(slots=True)
class Courses:
    """Records how far each narrator has told each scene to each listener, up to the last midnight.

    Attributes that end in ``_today`` hold what was assigned since; ``commit`` makes a day's tellings permanent.
    """

    library: Library
    pool: Names
    key: str
    """Key of the world's random streams."""
    _told: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """By (narrator, listener): the beats told of each scene."""
    _names: dict[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Names of the people in a scene, by (narrator, scene)."""
    _heard: dict[str, _Heard] = field(default_factory=dict)
    _today: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By (narrator, listener): the scenes of which a half was assigned today."""
    _names_today: dict[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    _heard_today: dict[str, set[str]] = field(default_factory=dict)
    """Names that each person heard or told today."""
    _halves_today: dict[str, Counter[tuple[str, int]]] = field(default_factory=dict)
    """How often each person heard or told each half of a scene today."""

    def begin_day(self) -> None:
        """Drop what was assigned since the last commit."""
        self._today, self._names_today, self._heard_today, self._halves_today = {}, {}, {}, {}

    def commit(self, tellings: Sequence[Telling]) -> None:
        """Record a day's tellings, at midnight."""
        for telling in tellings:
            beats = self._told.setdefault((telling.narrator, telling.listener), {})
            beats[telling.scene] = max(beats.get(telling.scene, 0), telling.beats)
            self._names[telling.narrator, telling.scene] = telling.names
            for person in (telling.narrator, telling.listener):
                heard = self._heard.setdefault(person, _Heard())
                heard.whose.setdefault(telling.scene, set()).add(telling.narrator)
                heard.halves[telling.half] += 1
                for _, name in telling.names:
                    heard.names.setdefault(name, set()).add((telling.narrator, telling.scene))

    def assign(
        self, stream: Stream, thread: Thread, narrator: str, listeners: Sequence[str], before: Thread | None = None
    ) -> Thread:
        """Return ``thread`` with the half of a scene that its people are to hear, chosen in this order:

        1. Scenes of ``before`` (the talk's first story), and those that share a name with it, are left out.
        2. A new scene is one that fits (``fresh``); if there is none, one that is new to the listeners; else any.
           Among these it is the one that its people have met least.
        3. A scene that the same narrator began on an earlier day is continued instead if nothing is fresh, if its
           second half was met less often than the new scene, or, at equal counts, with the chance GOES_ON.
        """
        continuable = self._continuable(narrator, listeners)
        scenes: Sequence[str] = tuple(self.library.scenes)
        if before is not None:
            continuable, scenes = (self._without(before, keys, narrator) for keys in (continuable, scenes))
        people = (narrator, *listeners)
        known = self._known_from(narrator, listeners)
        new = [key for key in scenes if key not in known]
        fresh = self._fitting(new, narrator, listeners)
        least = self._least_met(stream, fresh or new or scenes, people, TALK_BEATS, thread.topic)
        if continuable:
            next_half = self._least_met(stream, continuable, people, BEATS)
            more = self._met(next_half, BEATS, people) - self._met(least, TALK_BEATS, people)
            if not fresh or more < 0 or (more == 0 and stream.chance(GOES_ON)):
                return self.telling(thread, narrator, listeners, self.library.scenes[next_half], TALK_BEATS)
        return self.telling(thread, narrator, listeners, self.library.scenes[least], 0, before)

    def _without(self, before: Thread, keys: Sequence[str], narrator: str) -> list[str]:
        """Return the scenes that are not that of ``before`` and whose names with this narrator are none of it."""
        names = {name for _, name in before.names}
        return [
            key
            for key in keys
            if key != before.scene and not any(name in names for _, name in self._known_names(narrator, key) or ())
        ]

    def _least_met(
        self, stream: Stream, keys: Sequence[str], people: Sequence[str], beats: int, topic: str = ""
    ) -> str:
        """Draw one of the scenes ``keys`` whose half up to ``beats`` the people met least, if possible of ``topic``."""
        met = dict.fromkeys(keys, 0)
        for halves in self._counts(people):
            for (key, end), count in halves.items():
                if end == beats and key in met:
                    met[key] += count
        fewest = min(met.values())
        least = [key for key in keys if met[key] == fewest]
        return stream.pick([key for key in least if key.split(".")[0] == topic] or least)

    def _met(self, scene: str, beats: int, people: Sequence[str]) -> int:
        """Return how often the people met the half of a scene up to ``beats``: the sum over people, today included."""
        return sum(halves[scene, beats] for halves in self._counts(people))

    def _counts(self, people: Sequence[str]) -> list[Counter[tuple[str, int]]]:
        """Return how often people met each half of a scene: two counters for each person, before today and today."""
        return [
            halves
            for person in people
            for halves in (self._heard_by(person).halves, self._halves_today.get(person, _NOTHING))
        ]

    def telling(
        self,
        thread: Thread,
        narrator: str,
        listeners: Sequence[str],
        scene: Scene,
        first_beat: int,
        before: Thread | None = None,
    ) -> Thread:
        """Return ``thread`` with ``scene`` from ``first_beat`` on and its names; count it as met today.

        New names are none of ``before``, the talk's first story.
        """
        for listener in listeners:
            self._today.setdefault((narrator, listener), set()).add(scene.key)
        names = self._known_names(narrator, scene.key)
        if names is None:
            names = self._names_today[narrator, scene.key] = self._draw(narrator, listeners, scene, before)
        beats = first_beat + TALK_BEATS
        met = max(self._met(scene.key, beats, [person]) for person in (narrator, *listeners))
        for person in (narrator, *listeners):
            self._heard_today.setdefault(person, set()).update(name for _, name in names)
            self._halves_today.setdefault(person, Counter())[scene.key, beats] += 1
        return Thread(scene.key.split(".")[0], thread.narrator, thread.turns, scene.key, first_beat, names, met)

    def _known_names(self, narrator: str, scene: str) -> tuple[tuple[str, str], ...] | None:
        """Return the names in a narrator's scene; None if none were drawn yet, () or None if it has no people."""
        return self._names.get((narrator, scene)) or self._names_today.get((narrator, scene))

    def _draw(
        self, narrator: str, listeners: Sequence[str], scene: Scene, before: Thread | None
    ) -> tuple[tuple[str, str], ...]:
        """Draw a name for each person of the scene, as (slot, name).

        Each is new to narrator and listeners if the pool has such a name; else new among the narrator's scenes; else
        at least new within this scene and ``before``.
        """
        stream = Stream(self.key, "names", narrator, scene.key)
        of_narrator = {name for (who, _), names in self._names_today.items() if who == narrator for _, name in names}
        people = (narrator, *listeners)
        known = [set(self._heard_by(person).names) | self._heard_today.get(person, set()) for person in people]
        used = {name for _, name in before.names} if before is not None else set[str]()
        names = []
        for slot, sex in sorted(scene.people.items()):
            for avoided in (used.union(of_narrator, *known), used | of_narrator | self._own_names(narrator), used):
                free = [name for name in self.pool[sex] if name not in avoided]
                if free:
                    break
            name = stream.pick(free)
            used.add(name)
            names.append((slot, name))
        return tuple(names)

    def _own_names(self, narrator: str) -> set[str]:
        """Return the names in scenes that ``narrator`` told before today."""
        names = self._heard_by(narrator).names
        return {name for name, where in names.items() if any(teller == narrator for teller, _ in where)}

    def _heard_by(self, person: str) -> _Heard:
        return self._heard.get(person, _HEARD_NOTHING)

    def _fitting(self, new: Sequence[str], narrator: str, listeners: Sequence[str]) -> list[str]:
        """Return the scenes, of those that are ``new`` to the listeners, that no one present knows from another teller.

        None of their names is known to a listener from another scene or narrator.
        """
        heard_by_people = [self._heard_by(person) for person in (narrator, *listeners)]
        others = set[str]().union(*(heard.told_by_others(narrator) for heard in heard_by_people))
        known_to_listeners = [heard.names for heard in heard_by_people[1:]]
        return [
            key
            for key in new
            if key not in others
            and not any(
                names.get(name, set()) - {(narrator, key)}
                for _, name in self._known_names(narrator, key) or ()
                for names in known_to_listeners
            )
        ]

    def _known_from(self, narrator: str, listeners: Sequence[str]) -> set[str]:
        """Return the scenes of which any listener heard something from ``narrator``, today included."""
        pairs = [(narrator, listener) for listener in listeners]
        return set[str]().union(
            *(self._told.get(pair, ()) for pair in pairs), *(self._today.get(pair, ()) for pair in pairs)
        )

    def _continuable(self, narrator: str, listeners: Sequence[str]) -> list[str]:
        """Return keys of the scenes of which all listeners heard only the first half, before today."""
        beats_by_listener = [self._told.get((narrator, listener), {}) for listener in listeners]
        return [
            key
            for key in beats_by_listener[0]
            if all(beats.get(key) == TALK_BEATS for beats in beats_by_listener)
            and not any(key in self._today.get((narrator, listener), ()) for listener in listeners)
        ]


def tellings(threads: Sequence[Thread], people: Sequence[str]) -> list[Telling]:
    """Return a session's tellings, one for each thread with a scene and each listener.

    ``people`` are the ids of its speakers, the assistant last if there is one.
    """
    stories = [thread for thread in threads if thread.scene]
    beats = (TALK_BEATS, second_story_beats(len(people)))[: len(stories)]
    return [
        Telling(people[thread.narrator], listener, thread.scene, thread.first_beat + count, thread.names)
        for thread, count in zip(stories, beats, strict=True)
        for index, listener in enumerate(people)
        if index != thread.narrator
    ]
