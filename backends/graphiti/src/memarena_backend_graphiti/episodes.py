"""Turns a session into episodes of Graphiti: lines ``name: text`` with a time, and the sources that they come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

from memarena_backend import Session, Turn, line_of, setting_in_words

from memarena_backend_graphiti.settings import EpisodeOf


@dataclass(frozen=True, slots=True)
class Source:
    """The source of an episode. ``turn_ids`` is empty if it is a whole session, or a part of one.

    ``time`` is that of its first turn, RFC 3339 with the UTC offset as sent.
    """

    session_id: str
    turn_ids: tuple[str, ...]
    time: str

    def to_json(self) -> str:
        """Return it as JSON, to be stored as the name of the episode, the only field that no prompt contains."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Source:
        """Parse the result of :meth:`to_json`."""
        fields = json.loads(text)
        return cls(fields["session_id"], tuple(fields["turn_ids"]), fields["time"])


@dataclass(frozen=True, slots=True)
class Episode:
    """A text that Graphiti extracts in one step, with its source."""

    source: Source
    text: str
    said_at: datetime


def episodes_of(session: Session, episode: EpisodeOf, episode_bytes: int) -> list[Episode]:
    """Return the episodes of a session, in order; none for a session without text.

    Each opens with the setting of the session, if it is known.
    """
    turns = [turn for turn in session.turns if turn.text.strip()]
    bundles = [[turn] for turn in turns] if episode == "turn" else list(_bundles(turns, episode_bytes))
    return [_episode(session, bundle, by_turn=episode == "turn") for bundle in bundles]


def _bundles(turns: list[Turn], limit_bytes: int) -> Iterator[list[Turn]]:
    """Yield consecutive turns that fit the limit together; a longer turn is yielded alone."""
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
