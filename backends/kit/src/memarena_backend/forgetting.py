"""What Forget deletes (SPEC.md FGT): the target of a request, and the frames of a day without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memarena_proto import memory_backend_pb2 as pb

from memarena_backend.checks import check_id, check_required_text
from memarena_backend.errors import invalid_argument


@dataclass(frozen=True, slots=True)
class Target:
    """What is to go: a session by its id, or turns and events by their text."""

    session_id: str = ""
    says: Callable[[str], bool] = lambda _: False

    def frames_without(self, frames: Iterable[pb.IngestRequest]) -> tuple[list[pb.IngestRequest], int]:
        """The frames of a day that are left, in their order, and how many turns and events went."""
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
                rest = pb.IngestRequest.FromString(frame.SerializeToString())
                del rest.session.turns[:]
                rest.session.turns.extend(turns)
                remaining.append(rest)
                continue
            remaining.append(frame)
        return remaining, gone


def parse_target(request: pb.ForgetRequest) -> Target:
    """The target of a request. Raises CallError INVALID_ARGUMENT if there is none."""
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
