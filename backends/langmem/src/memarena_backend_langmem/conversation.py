"""Converts a session for LangMem: the owner's turns are the user's messages, all others the assistant's, with names."""

from __future__ import annotations

from collections.abc import Iterator

from memarena_backend import Role, Session, date_in_words, setting_in_words

PART_BYTES = 8_000
"""Bytes of text in an extraction; a longer session is extracted in parts, so that a prompt fits into the window of a
small reader."""

Message = dict[str, str]
"""``role`` (user or assistant) and ``content``."""


def parts_of(session: Session) -> list[list[Message]]:
    """Return the session's messages in one or more parts; empty if all turns are empty.

    Each part begins with date and setting of the session, since a memory of "yesterday" is useless without.
    """
    parts: list[list[Message]] = []
    room = 0
    for role, text in _texts_of(session):
        size = len(text.encode())
        if parts and size <= room:
            parts[-1].append({"role": role, "content": text})
        else:
            parts.append([{"role": role, "content": f"{_opening(session)}\n{text}"}])
            room = PART_BYTES
        room -= size
    return parts


def _texts_of(session: Session) -> Iterator[tuple[str, str]]:
    """Yield role and text of each message, none longer than a part."""
    for turn in session.turns:
        if turn.text.strip():
            role = "user" if turn.speaker.role is Role.OWNER else "assistant"
            before = f"{turn.said_at:%H:%M} {turn.speaker.display_name}: "
            for piece in _cut(turn.text, max(1, PART_BYTES - len(before.encode()))):
                yield role, before + piece


def _opening(session: Session) -> str:
    return f"{date_in_words(session.started_at)} {setting_in_words(session)}".rstrip()


def _cut(text: str, size_bytes: int) -> Iterator[str]:
    """Yield consecutive pieces of the text, each of at most ``size_bytes`` of UTF-8."""
    data = text.encode()
    start = 0
    while start < len(data):
        piece = data[start : start + size_bytes].decode(errors="ignore")
        yield piece
        start += len(piece.encode())
