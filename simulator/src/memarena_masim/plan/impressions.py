"""Computes what people feel and think of each other: collected during a day, committed at midnight, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memarena_masim.rng import Stream
from memarena_masim.world.model import World

FEELINGS = ("upset", "tired", "calm", "content", "cheerful")
"""Feelings from the worst to the best; a score is an index into these."""
_WORDS = ("distant", "cool", "even", "warm", "close")
_INERTIA = 0.7
"""Weight of the earlier warmth when another meeting is added to an impression."""
_PROVENANCE = 5
"""Number of latest sessions that an impression lists."""


@dataclass(frozen=True, slots=True)
class Feeling:
    """How one person feels about another after a session: ``score`` is an index into FEELINGS."""

    person: str
    other: str
    score: int
    session_id: str
    turn_id: str
    day: int


@dataclass(frozen=True, slots=True)
class Impression:
    """What one person thinks of another. ``warmth`` is from -2 to 2; ``day`` is the day of the last change."""

    warmth: float
    day: int
    feeling: str
    session_ids: tuple[str, ...]
    last_turn_id: str

    @property
    def words(self) -> str:
        """Return the warmth as one word."""
        return _WORDS[min(4, max(0, round(self.warmth) + 2))]


@dataclass(slots=True)
class Impressions:
    """Impressions as of the last midnight: ``of[person][other]``.

    ``mood[person]`` is the mean of the last day's scores, from -2 to 2; people without a session have none.
    """

    of: dict[str, dict[str, Impression]] = field(default_factory=dict)
    mood: dict[str, float] = field(default_factory=dict)

    def commit(self, feelings: list[Feeling]) -> None:
        """Add a day's feelings. Called once per day, at midnight."""
        today: dict[str, list[int]] = {}
        for felt in feelings:
            today.setdefault(felt.person, []).append(felt.score - 2)
            person_impressions = self.of.setdefault(felt.person, {})
            impression = person_impressions.get(felt.other)
            warmth = float(felt.score - 2)
            sessions: tuple[str, ...] = ()
            if impression is not None:
                warmth = _INERTIA * impression.warmth + (1 - _INERTIA) * warmth
                sessions = impression.session_ids
            person_impressions[felt.other] = Impression(
                warmth=round(warmth, 3),
                day=felt.day,
                feeling=FEELINGS[felt.score],
                session_ids=(*sessions, felt.session_id)[-_PROVENANCE:],
                last_turn_id=felt.turn_id,
            )
        self.mood = {person: round(sum(scores) / len(scores), 3) for person, scores in today.items()}

    def warmth(self, person: str, other: str) -> float:
        """Return how warmly a person thinks of another, from -2 to 2; 0 if they have not met."""
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
    """Draw how each person feels about each other one after a session, from closeness, mood, warmth and chance."""
    feelings = []
    for person in people:
        for other in people:
            if other == person:
                continue
            layer = world.edge(person, other).layer
            # close friends, friends, acquaintances; people of no layer start at 0
            base = {0: 0.8, 1: 0.5, 2: 0.2}.get(layer, 0.0) + 0.3 * state.mood.get(person, 0.0)
            score = round(2 + base + 0.25 * state.warmth(person, other) + 0.9 * stream.bell())
            feelings.append(Feeling(person, other, min(4, max(0, score)), session_id, last_turn_id, day))
    return feelings


def impressions_row(known: Mapping[str, Impression]) -> dict[str, dict[str, object]]:
    """Return the impressions of one person as ``agents_personas.jsonl`` has them, by the other person's id."""
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
