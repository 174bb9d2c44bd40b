"""A session as messages for MemOS: the owner is ``user``, everybody else ``assistant``, each with time and name.

MemOS knows two roles and extracts "from the perspective of user". Its prompt asks for absolute dates by the time of a
message, in brackets before it, so that is where the time stands.
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
        """Of its line in the prompt."""
        return len(f"{self.role}:{self.content}\n".encode())


@dataclass(frozen=True, slots=True)
class Part:
    """As much of a session as is extracted at a time."""

    session_id: str
    said_at: str
    """RFC 3339; of its first message."""
    messages: tuple[Message, ...]


def parts_of(session: Session, owner: Participant, part_bytes: int) -> list[Part]:
    """The session in as few parts as fit ``part_bytes`` each, turns in order; none if nobody said anything.

    A turn that is longer than a part is continued in the next. The first message says where and how the session took
    place, as far as that is known.
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
    """The text in pieces of at most ``limit_bytes`` (4 or more) of UTF-8, cut between characters."""
    data = text.encode()
    while len(data) > limit_bytes:
        piece = data[:limit_bytes].decode(errors="ignore")
        yield piece
        data = data[len(piece.encode()) :]
    if data:
        yield data.decode()
