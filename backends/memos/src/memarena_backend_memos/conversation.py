"""Turns a session into messages for MemOS: the owner is ``user``, all others ``assistant``, each with time and name.

MemOS knows two roles and extracts "from the perspective of user". Its prompt derives absolute dates from the time in
brackets before a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memarena_backend import Participant, Role, Session, moment_in_words, setting_in_words


@dataclass(frozen=True, slots=True)
class Message:
    """One message as the library takes it."""

    role: str
    content: str

    @property
    def size_bytes(self) -> int:
        """Return the size of its line in the prompt, in bytes of UTF-8."""
        return len(f"{self.role}:{self.content}\n".encode())


@dataclass(frozen=True, slots=True)
class Part:
    """The messages of a session that are extracted by one prompt."""

    session_id: str
    said_at: str
    """Time of its first message, RFC 3339."""
    messages: tuple[Message, ...]


def parts_of(session: Session, owner: Participant, part_bytes: int) -> list[Part]:
    """Return the session's turns, in order, in parts of at most ``part_bytes``; none for a session without text.

    A turn that is longer than a part continues in the next one. The first message has the setting of the session, as
    far as that is known.
    """
    parts: list[Part] = []
    room = 0
    for said_at, message in _messages(session, owner, part_bytes):
        if not parts or message.size_bytes > room:
            parts.append(Part(session.session_id, said_at, ()))
            room = part_bytes
        last = parts[-1]
        parts[-1] = Part(last.session_id, last.said_at, (*last.messages, message))
        room -= message.size_bytes
    return parts


def _messages(session: Session, owner: Participant, part_bytes: int) -> Iterator[tuple[str, Message]]:
    setting = setting_in_words(session)
    for turn in session.turns:
        if not turn.text.strip():
            continue
        speaker = turn.speaker
        is_owner = speaker.role is Role.OWNER or speaker.participant_id == owner.participant_id
        role = "user" if is_owner else "assistant"
        opening = f" [{moment_in_words(turn.said_at)}] {' '.join(speaker.display_name.split())}: "
        room = part_bytes - Message(role, opening).size_bytes
        for piece in _pieces(f"{setting} {turn.text}" if setting else turn.text, max(room, 4)):
            yield turn.said_at.isoformat(), Message(role, opening + piece)
        setting = ""


def _pieces(text: str, limit_bytes: int) -> Iterator[str]:
    """Yield the text in pieces of at most ``limit_bytes`` (4 or more) of UTF-8, cut between characters."""
    data = text.encode()
    while len(data) > limit_bytes:
        piece = data[:limit_bytes].decode(errors="ignore")
        yield piece
        data = data[len(piece.encode()) :]
    if data:
        yield data.decode()
