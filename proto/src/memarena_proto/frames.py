"""Frames of a day that fit: a session above the limit of a frame is split (SPEC.md ING, LIM)."""

from __future__ import annotations

from collections.abc import Iterator

from . import memory_backend_pb2 as pb

MAX_FRAME_BYTES = 1 << 20
"""SPEC.md LIM: largest frame of an Ingest."""
FRAME_TARGET_BYTES = MAX_FRAME_BYTES - (1 << 12)
"""What a session is split at: below the limit by more than a frame adds to its session."""


def split_session(session: pb.Session, target_bytes: int = FRAME_TARGET_BYTES) -> Iterator[pb.Session]:
    """The session as one frame, or as several that each stay below ``target_bytes`` (a turn is never split)."""
    if session.ByteSize() <= target_bytes:
        yield session
        return
    part = pb.Session()
    part.CopyFrom(session)
    del part.turns[:]
    size = part.ByteSize()
    for turn in session.turns:
        # A repeated message costs its bytes, a tag and a length of at most five bytes.
        cost = turn.ByteSize() + 6
        if part.turns and size + cost > target_bytes:
            yield part
            part = pb.Session(session_id=session.session_id, continuation=True)
            size = part.ByteSize()
        part.turns.append(turn)
        size += cost
    yield part
