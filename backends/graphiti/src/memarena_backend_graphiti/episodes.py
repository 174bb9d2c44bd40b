"""A session as episodes of Graphiti: lines ``name: text`` under one time, and what of the day each stems from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

from memarena_backend import Session, Turn, line_of, setting_in_words

from memarena_backend_graphiti.settings import EpisodeOf


@dataclass(frozen=True, slots=True)
class Source:
    """What an episode stems from. ``turn_ids`` is empty where it is a whole session, or a part of one.

    ``time`` is when it was said, RFC 3339 with the offset that it was sent with.
    """

    session_id: str
    turn_ids: tuple[str, ...]
    time: str

    def to_json(self) -> str:
        """For the name of the episode: the one field of it that no prompt shows."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Source:
        """The inverse of :meth:`to_json`."""
        fields = json.loads(text)
        return cls(fields["session_id"], tuple(fields["turn_ids"]), fields["time"])


@dataclass(frozen=True, slots=True)
class Episode:
    """What Graphiti is given at a time."""

    source: Source
    text: str
    said_at: datetime


def episodes_of(session: Session, episode: EpisodeOf, episode_bytes: int) -> list[Episode]:
    """The episodes of a session, in order; none if nobody said anything.

    Each opens with where and how the session took place, as far as that is known: a person would know it, too.
    """
    turns = [turn for turn in session.turns if turn.text.strip()]
    bundles = [[turn] for turn in turns] if episode == "turn" else list(_bundles(turns, episode_bytes))
    return [_episode(session, bundle, by_turn=episode == "turn") for bundle in bundles]


def _bundles(turns: list[Turn], limit_bytes: int) -> Iterator[list[Turn]]:
    """Consecutive turns that fit the limit together; a turn that is longer than that stands alone."""
    bundle: list[Turn] = []
    size = 0
    for turn in turns:
        line_bytes = len(line_of(turn).encode()) + 1
        if bundle and size + line_bytes > limit_bytes:
            yield bundle
            bundle, size = [], 0
        bundle.append(turn)
        size += line_bytes
    if bundle:
        yield bundle


def _episode(session: Session, turns: list[Turn], *, by_turn: bool) -> Episode:
    first = turns[0].said_at
    ids = tuple(turn.turn_id for turn in turns) if by_turn else ()
    lines = [setting_in_words(session), *map(line_of, turns)]
    return Episode(Source(session.session_id, ids, first.isoformat()), "\n".join(filter(None, lines)), first)
