"""Turns a session into Memobase's chat blobs: the owner is the ``user``, all others are ``assistant`` with an alias.

Memobase knows two roles and extracts facts about the ``user``. The alias is the speaker's name, by which the extracting
model can distinguish the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from memarena_backend import Participant, Role, Session, setting_in_words
from memobase import ChatBlob  # type: ignore[import-untyped]
from memobase.core.blob import OpenAICompatibleMessage as Message  # type: ignore[import-untyped]

MESSAGE_OVERHEAD_BYTES = 160
"""Allowance for the time, alias and role that the server adds to a message in the prompt."""


def blobs_of(session: Session, owner: Participant, blob_bytes: int) -> list[ChatBlob]:
    """Return the session's turns, in order, in blobs of at most ``blob_bytes``; none for a session without text.

    A turn that is longer than a blob continues in the next one. The first message opens with the session's setting, as
    far as that is known.
    """
    blobs: list[list[Message]] = []
    room = 0
    for message in _messages(session, owner, blob_bytes):
        size = len(message.content.encode()) + MESSAGE_OVERHEAD_BYTES
        if not blobs or size > room:
            blobs.append([])
            room = blob_bytes
        blobs[-1].append(message)
        room -= size
    return [ChatBlob(messages=messages) for messages in blobs]


def _messages(session: Session, owner: Participant, blob_bytes: int) -> Iterator[Message]:
    setting = setting_in_words(session)
    for turn in session.turns:
        if not turn.text.strip():
            continue
        said_at = turn.said_at.isoformat(sep=" ", timespec="minutes")
        opening = f"{setting} " if setting else ""
        setting = ""
        for part in _parts(opening + turn.text, blob_bytes - MESSAGE_OVERHEAD_BYTES):
            yield _message(turn.speaker, owner, part, said_at)


def _message(speaker: Participant, owner: Participant, text: str, at: str) -> Message:
    is_owner = speaker.role is Role.OWNER or speaker.participant_id == owner.participant_id
    return Message(role="user" if is_owner else "assistant", content=text, alias=speaker.display_name, created_at=at)


def _parts(text: str, limit_bytes: int) -> Iterator[str]:
    """Yield the text in parts of at most ``limit_bytes`` of UTF-8, cut between characters."""
    data = text.encode()
    while len(data) > limit_bytes:
        part = data[:limit_bytes].decode(errors="ignore")
        yield part
        data = data[len(part.encode()) :]
    if data:
        yield data.decode()
