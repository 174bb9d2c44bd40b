"""Turns a session into messages for Mem0, of ``user`` (the owner) and ``assistant`` (all others), with metadata.

Mem0 knows two roles and drops names, so each message opens with the name of its speaker, as Mem0's prompt expects for
conversations of several speakers.
"""

from __future__ import annotations

from dataclasses import dataclass

from memarena_backend import Item, Participant, Role, Session, Turn, line_of, setting_in_words

Message = dict[str, str]

SESSION_ID, TURN_ID, TIME = "session_id", "turn_id", "said_at"
"""Keys of the metadata that Mem0 stores with a memory and returns."""


@dataclass(frozen=True, slots=True)
class SessionPart:
    """The arguments of one call of Mem0's ``add``."""

    messages: list[Message]
    metadata: dict[str, str]


def whole_session(session: Session, owner: Participant) -> SessionPart | None:
    """Return the session for one extraction; None if it has no text. The first message opens with the setting."""
    turns = [turn for turn in session.turns if turn.text.strip()]
    if not turns:
        return None
    messages = [_message(turn, owner) for turn in turns]
    if setting := setting_in_words(session):
        messages[0]["content"] = f"{setting} {messages[0]['content']}"
    return SessionPart(messages, _metadata(session, session.started_at.isoformat()))


def single_turns(session: Session, owner: Participant) -> list[SessionPart]:
    """Return each turn with text as a part, so that its memory names the turn."""
    return [
        SessionPart([_message(turn, owner)], {**_metadata(session, turn.said_at.isoformat()), TURN_ID: turn.turn_id})
        for turn in session.turns
        if turn.text.strip()
    ]


def item_of(text: str, score: float, metadata: dict[str, str], *, derived: bool) -> Item:
    """Return a memory as an item, with the sources that its metadata names."""
    turn = metadata.get(TURN_ID)
    return Item(
        text=text,
        score=score,
        session_ids=(metadata[SESSION_ID],),
        turn_ids=(turn,) if turn else (),
        time=metadata[TIME],
        derived=derived,
    )


def _message(turn: Turn, owner: Participant) -> Message:
    is_owner = turn.speaker.role is Role.OWNER or turn.speaker.participant_id == owner.participant_id
    return {"role": "user" if is_owner else "assistant", "content": line_of(turn)}


def _metadata(session: Session, at: str) -> dict[str, str]:
    # created_at is a key of the library, which defaults to the clock of the machine.
    return {SESSION_ID: session.session_id, TIME: at, "created_at": at}
