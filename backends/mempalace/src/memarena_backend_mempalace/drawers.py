"""Splits a day into drawers, MemPalace's units of text, as its conversation miner would: one exchange each, verbatim.

The miner reads transcripts of one user and one assistant. Here the owner counts as the user: an exchange begins with a
turn of the owner and ends before the owner's next turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from memarena_backend import Day, Event, Role, Session, Turn, line_of, setting_in_words

LONGEST_CHARS = 800
"""Greatest length of a drawer: the library's default."""
SHORTEST_CHARS = 30
"""A text of at most this length is joined to the previous drawer: the library's default."""
EVENTS_ROOM = "events"


@dataclass(frozen=True, slots=True)
class Drawer:
    """The text of one drawer, and its source. A longer text is cut into ``pieces`` drawers, from ``first`` on."""

    text: str = field(repr=False)
    source: str
    """Id of its session or event."""
    is_event: bool
    number: int
    """Index among the drawers of its source."""
    first: int
    """``number`` of the first piece."""
    pieces: int
    """Number of drawers that its text takes, 1 unless it was cut."""
    topic_of: str = field(repr=False)
    """The text of the whole source, from which the library chooses its room (topic)."""
    said_at: str
    """Time of its first turn, or of its event, RFC 3339."""
    turn_ids: tuple[str, ...] = ()


def drawers_of(day: Day) -> list[Drawer]:
    """Return the drawers of a day: sessions in their order, then events. Turns without text are skipped."""
    drawers: list[Drawer] = []
    for session in day.sessions:
        drawers += _of_session(session)
    for event in day.events:
        drawers += _of_event(event)
    return drawers


def _of_session(session: Session) -> list[Drawer]:
    """Return the drawers of a session: units of turns, long units cut into pieces."""
    session_text = "\n".join(turn.text for turn in session.turns)
    setting = setting_in_words(session)
    opening = f"{setting}\n" if setting else ""
    drawers: list[Drawer] = []
    for turns in _units(session.turns, LONGEST_CHARS - len(opening)):
        pieces = list(_cut(f"{opening}{_text(turns)}"))
        first = len(drawers)
        for piece in pieces:
            said_at, ids = turns[0].said_at.isoformat(), tuple(turn.turn_id for turn in turns)
            number = len(drawers)
            drawers.append(
                Drawer(piece, session.session_id, False, number, first, len(pieces), session_text, said_at, ids)
            )
    return drawers


def _of_event(event: Event) -> list[Drawer]:
    pieces = list(_cut(event.text))
    said_at = event.happened_at.isoformat()
    return [
        Drawer(piece, event.event_id, True, number, 0, len(pieces), event.text, said_at)
        for number, piece in enumerate(pieces)
    ]


def _units(turns: Iterable[Turn], longest_chars: int) -> list[list[Turn]]:
    """Return groups of turns that share drawers: exchanges, cut between turns if they are too long.

    A group that is too short to be found by itself is joined to the previous one.
    """
    units: list[list[Turn]] = []
    for exchange in _exchanges(turns):
        for unit in _packed(exchange, longest_chars):
            short = len(_text(unit).strip()) <= SHORTEST_CHARS
            if units and short and len(_text([*units[-1], *unit])) <= longest_chars:
                units[-1] += unit
            else:
                units.append(unit)
    return units


def _exchanges(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    exchange: list[Turn] = []
    for turn in turns:
        if not turn.text.strip():
            continue
        if turn.speaker.role is Role.OWNER and exchange:
            yield exchange
            exchange = []
        exchange.append(turn)
    if exchange:
        yield exchange


def _packed(exchange: list[Turn], longest_chars: int) -> Iterator[list[Turn]]:
    """Yield as many turns at a time as fit into a drawer; a turn that is longer than a drawer is yielded alone."""
    packed: list[Turn] = []
    for turn in exchange:
        if packed and len(_text([*packed, turn])) > longest_chars:
            yield packed
            packed = []
        packed.append(turn)
    yield packed


def _text(turns: list[Turn]) -> str:
    return "\n".join(map(line_of, turns))


def _cut(text: str) -> Iterator[str]:
    """Yield pieces that joined give the text; each ends at white space if its second half has any."""
    start = 0
    while len(text) - start > LONGEST_CHARS:
        half, end = start + LONGEST_CHARS // 2, start + LONGEST_CHARS
        space_position = max(text.rfind(space, half, end) for space in " \n\t")
        end = space_position + 1 if space_position >= 0 else end
        yield text[start:end]
        start = end
    yield text[start:]
