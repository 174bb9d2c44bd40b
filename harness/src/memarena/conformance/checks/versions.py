"""VER: what a later minor version may send is ignored or refused, never misunderstood."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from google.protobuf.message import Message
from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import completion
from memarena.conformance.fixtures import edited_day

_UNKNOWN_FIELD = b"\x82\xf7\x02\x05later"
"""Field 6000 with five bytes: a number that no message of the contract has."""
_UNKNOWN_VALUE = 99

M = TypeVar("M", bound=Message)


def _extended(message: M) -> M:
    """Return a copy that carries a field of a later version."""
    copy = type(message)()
    copy.ParseFromString(message.SerializeToString() + _UNKNOWN_FIELD)
    return copy


@check("ver.unknown-fields", "VER-2", "VER-3", "VER-4")
def unknown_fields(backend: BackendUnderTest) -> None:
    """Fields of a later version are ignored."""
    ns, fact = backend.namespace(), backend.fact()
    session = ns.session(fact.statement)
    session.turns[0].CopyFrom(_extended(session.turns[0]))
    session.participants[0].CopyFrom(_extended(session.participants[0]))
    ns.commit([_extended(frame) for frame in ns.frames(_extended(session))])
    ns.expect_visible(fact)
    question = _extended(ns.question(fact.question))
    ns.expect_ok(partial(backend.search, question), "a question with a field of a later version")


@check("ver.unknown-enums", "VER-3", "VER-5")
def unknown_enums(backend: BackendUnderTest) -> None:
    """An unknown value in a REQUIRED enum is refused, in an OPTIONAL one it means its zero value."""
    ns = backend.namespace()
    sound = ns.frames(ns.session("Good morning."))
    for path in ("header.owner.role", "session.participants.role"):
        frames = edited_day(sound, path, _UNKNOWN_VALUE)
        ns.refuse(frames, "INVALID_ARGUMENT", f"{path} {_UNKNOWN_VALUE}")
    ns.commit(sound)
    question = ns.question("What?")
    setattr(question.requester, "kind", _UNKNOWN_VALUE)  # noqa: B010  (a value that the enum does not have)
    ns.refuse(question, "INVALID_ARGUMENT", f"requester.kind {_UNKNOWN_VALUE}")
    if backend.has(pb.CAPABILITY_ANSWER):
        for name in ("prompt_style", "thinking"):
            requests = []
            for value in (0, _UNKNOWN_VALUE):
                request = ns.answer_request("What?")
                setattr(request.reading, name, value)
                with backend.models.recording() as calls:
                    completion(ns.answer(request), f"reading.{name} {value}, which means the same as none,")
                requests.append([call.body for call in calls if call.path == "/chat/completions"])
            if requests[0] != requests[1] and requirements.stable_search(backend) is None:
                raise BrokenError(f"reading.{name} {_UNKNOWN_VALUE} means the same as none, and the reader is asked "
                                  "otherwise")  # fmt: skip
