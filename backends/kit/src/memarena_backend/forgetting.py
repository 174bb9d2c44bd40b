"""Implements what Forget deletes (SPEC.md FGT): parses the target of a request, and removes it from a day's frames.

The frames are changed and the memory is rebuilt from them, so that no memory needs its own way to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memarena_proto import memory_backend_pb2 as pb

from memarena_backend.checks import check_id, check_required_text
from memarena_backend.errors import invalid_argument


@dataclass(frozen=True, slots=True)
class Target:
    """What to delete: the session ``session_id``, or the turns and events whose text satisfies ``says``."""

    session_id: str = ""
    says: Callable[[str], bool] = lambda _: False

    def frames_without(self, frames: Iterable[pb.IngestRequest]) -> tuple[list[pb.IngestRequest], int]:
        """Return the remaining frames of a day, in order, and how many turns and events were removed."""
        remaining: list[pb.IngestRequest] = []
        gone = 0
        for frame in frames:
            kind = frame.WhichOneof("frame")
            if kind == "session" and frame.session.session_id == self.session_id:
                gone += len(frame.session.turns)
                continue
            if kind == "event" and self.says(frame.event.text):
                gone += 1
                continue
            if kind == "session" and any(self.says(turn.text) for turn in frame.session.turns):
                turns = [turn for turn in frame.session.turns if not self.says(turn.text)]
                gone += len(frame.session.turns) - len(turns)
                shortened = pb.IngestRequest.FromString(frame.SerializeToString())
                del shortened.session.turns[:]
                shortened.session.turns.extend(turns)
                remaining.append(shortened)
                continue
            remaining.append(frame)
        return remaining, gone


def parse_target(request: pb.ForgetRequest) -> Target:
    """Return the target of a request. Raises CallError INVALID_ARGUMENT if there is none."""
    match request.WhichOneof("target"):
        case "session_id":
            return Target(session_id=check_id("session_id", request.session_id))
        case "subject":
            name = check_required_text("subject", request.subject).casefold()
            return Target(says=lambda text: name in text.casefold())
        case "fact_text":
            words = check_required_text("fact_text", request.fact_text)
            return Target(says=lambda text: words in text)
        case _:
            raise invalid_argument("target", "expected session_id, subject or fact_text")
