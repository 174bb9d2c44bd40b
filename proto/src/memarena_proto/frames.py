"""Splits a session that exceeds the limit of a frame (SPEC.md ING, LIM)."""

from __future__ import annotations

from collections.abc import Iterator

from . import memory_backend_pb2 as pb

MAX_FRAME_BYTES = 1 << 20
"""SPEC.md LIM: largest frame of an Ingest."""
FRAME_TARGET_BYTES = MAX_FRAME_BYTES - (1 << 12)
"""Size at which a session is split: the margin below the limit is larger than a frame's own fields."""


def split_session(session: pb.Session, target_bytes: int = FRAME_TARGET_BYTES) -> Iterator[pb.Session]:
    """Yield the session as one frame, or as several of at most ``target_bytes`` each (a turn is never split)."""
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
