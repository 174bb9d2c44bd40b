"""Converts results of a search to items of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memarena_backend import Item

from memarena_backend_graphiti.episodes import Source


@dataclass(frozen=True, slots=True)
class GraphMatch:
    """A fact or an entity. ``valid_from`` and ``valid_until`` are None if the model named no time."""

    text: str
    score: float
    sources: tuple[Source, ...]
    valid_from: datetime | None = None
    valid_until: datetime | None = None


def item_of(match: GraphMatch) -> Item:
    """Return a fact or an entity as an item, whose text ends in the time of its validity if the model named one."""
    sources = match.sources
    return Item(
        text=match.text + _validity(match),
        score=match.score,
        session_ids=tuple(dict.fromkeys(source.session_id for source in sources)),
        turn_ids=tuple(dict.fromkeys(turn for source in sources for turn in source.turn_ids)),
        time=sources[-1].time if sources else "",
        valid_from=match.valid_from.isoformat() if match.valid_from else "",
        valid_until=match.valid_until.isoformat() if match.valid_until else "",
        derived=True,
    )


def _validity(match: GraphMatch) -> str:
    begin = match.valid_from.date().isoformat() if match.valid_from else ""
    end = match.valid_until.date().isoformat() if match.valid_until else ""
    match bool(begin), bool(end):
        case True, True:
            return f" (from {begin} to {end})"
        case True, False:
            return f" (since {begin})"
        case False, True:
            return f" (until {end})"
        case _:
            return ""
