"""What people feel and think of each other: collected during a day, committed at its end, with source sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memarena_masim.rng import Stream
from memarena_masim.world.model import World

FEELINGS = ("upset", "tired", "calm", "content", "cheerful")
"""From the worst to the best; a feeling is an index into these."""
_WORDS = ("distant", "cool", "even", "warm", "close")
_INERTIA = 0.7
"""Share of an impression that stays when another meeting is added to it."""
_PROVENANCE = 5
"""So many of the last sessions are kept with an impression."""


@dataclass(frozen=True, slots=True)
class Feeling:
    """How a session left a person: an index into FEELINGS, and where it comes from."""

    person: str
    other: str
    score: int
    session_id: str
    turn_id: str
    day: int


@dataclass(frozen=True, slots=True)
class Impression:
    """What one person thinks of another. ``warmth`` from -2 to 2; ``day`` is the last one that changed it."""

    warmth: float
    day: int
    feeling: str
    session_ids: tuple[str, ...]
    last_turn_id: str

    @property
    def words(self) -> str:
        """The warmth in a word."""
        return _WORDS[min(4, max(0, round(self.warmth) + 2))]


@dataclass(slots=True)
class Impressions:
    """Impressions as of the last midnight. ``of[person][other]``; ``mood[person]`` is the mean of the last day."""

    of: dict[str, dict[str, Impression]] = field(default_factory=dict)
    mood: dict[str, float] = field(default_factory=dict)

    def commit(self, feelings: list[Feeling]) -> None:
        """Add a day's feelings. Called once per day, at midnight."""
        today: dict[str, list[int]] = {}
        for felt in feelings:
            today.setdefault(felt.person, []).append(felt.score - 2)
            known = self.of.setdefault(felt.person, {})
            before = known.get(felt.other)
            warmth = float(felt.score - 2)
            sessions: tuple[str, ...] = ()
            if before is not None:
                warmth = _INERTIA * before.warmth + (1 - _INERTIA) * warmth
                sessions = before.session_ids
            known[felt.other] = Impression(
                warmth=round(warmth, 3),
                day=felt.day,
                feeling=FEELINGS[felt.score],
                session_ids=(*sessions, felt.session_id)[-_PROVENANCE:],
                last_turn_id=felt.turn_id,
            )
        self.mood = {person: round(sum(scores) / len(scores), 3) for person, scores in today.items()}

    def warmth(self, person: str, other: str) -> float:
        """How warmly a person thinks of another, 0 if they have not met."""
        impression = self.of.get(person, {}).get(other)
        return 0.0 if impression is None else impression.warmth


def felt(
    world: World,
    state: Impressions,
    stream: Stream,
    people: tuple[str, ...],
    session_id: str,
    last_turn_id: str,
    day: int,
) -> list[Feeling]:
    """How a session between people leaves each of them, from their closeness, their mood and chance."""
    feelings = []
    for person in people:
        for other in people:
            if other == person:
                continue
            layer = world.edge(person, other).layer
            base = {0: 0.8, 1: 0.5, 2: 0.2}.get(layer, 0.0) + 0.3 * state.mood.get(person, 0.0)
            score = round(2 + base + 0.25 * state.warmth(person, other) + 0.9 * stream.bell())
            feelings.append(Feeling(person, other, min(4, max(0, score)), session_id, last_turn_id, day))
    return feelings


def impressions_row(known: Mapping[str, Impression]) -> dict[str, dict[str, object]]:
    """Impressions of one person as ``agents_personas.jsonl`` has them."""
    return {
        other: {
            "impression": seen.words,
            "warmth": seen.warmth,
            "feeling": seen.feeling,
            "day_index": seen.day,
            "session_ids": list(seen.session_ids),
            "turn_id": seen.last_turn_id,
        }
        for other, seen in sorted(known.items())
    }
