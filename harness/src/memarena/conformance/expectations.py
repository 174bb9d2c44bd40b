"""Tests calls and items against expectations: refusals by code and field, facts that are returned or not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.errors import BrokenError
from memarena.conformance.fixtures import Fact
from memarena.conformance.wire import Received, RefusedError


def expect_refused(
    call: Callable[[], object], code: str | Sequence[str], what: str, *, field: str | None = None
) -> RefusedError:
    """Expect the call to fail with this code, and its BadRequest to name this field (or one within it), if any."""
    codes = (code,) if isinstance(code, str) else tuple(code)
    try:
        call()
    except RefusedError as error:
        if error.code not in codes:
            raise BrokenError(f"{what}: expected {' or '.join(codes)}, got {error}") from error
        if field is not None and not any(named == field or named.startswith(f"{field}.") for named in error.fields):
            raise BrokenError(f"{what}: expected a BadRequest that names {field}, got {error}") from error
        return error
    raise BrokenError(f"{what}: expected {' or '.join(codes)}, but the call was answered with OK")


def completion(received: Received, what: str = "a sound request") -> pb.Completed:
    """Return the Completed. Raises BrokenError if the call failed, did not complete, or its pieces differ from it."""
    if received.refused is not None:
        raise BrokenError(f"Answer: {what} was refused: {received.refused}")
    if (completed := received.completed) is None:
        raise BrokenError(f"Answer: the stream ended without Completed ({', '.join(received.kinds()) or 'no events'})")
    pieces = [event.text_delta.text for event in received.events if event.HasField("text_delta")]
    if not all(pieces):
        raise BrokenError(f"Answer: {what}: a text_delta is empty")
    if pieces and "".join(pieces) != completed.text:
        raise BrokenError(f"Answer: {what}: the text_deltas say {''.join(pieces)!r}, completed says {completed.text!r}")
    return completed


def with_access(frames: Iterable[pb.IngestRequest], access: pb.ModelAccess) -> list[pb.IngestRequest]:
    """Return the frames with model access in every header that has none."""
    sent = []
    for frame in frames:
        if frame.HasField("header") and not frame.header.HasField("model_access"):
            copy = pb.IngestRequest()
            copy.CopyFrom(frame)
            copy.header.model_access.CopyFrom(access)
            sent.append(copy)
        else:
            sent.append(frame)
    return sent


def shows(items: Iterable[pb.MemoryItem], fact: Fact, *, verbatim: bool) -> bool:
    """Whether an item contains a fact: its statement if ``verbatim``, else its value."""
    if verbatim:
        return any(fact.statement in item.text for item in items)
    return mentions(items, fact)


def mentions(items: Iterable[pb.MemoryItem], fact: Fact) -> bool:
    """Whether an item contains the value of a fact in any letter case."""
    return any(fact.value.lower() in item.text.lower() for item in items)


def differs(first: Sequence[pb.MemoryItem], second: Sequence[pb.MemoryItem]) -> bool:
    """Whether two results are not the same items in the same order. Scores may differ in their last digits."""

    def essence(items: Sequence[pb.MemoryItem]) -> list[tuple[str, str, list[Sequence[str]]]]:
        return [(x.text, x.time, [x.source_session_ids, x.source_turn_ids, x.source_event_ids]) for x in items]

    return essence(first) != essence(second)


def scores_differ(old: Sequence[pb.MemoryItem], new: Sequence[pb.MemoryItem]) -> bool:
    """Whether the scores of the same items differ by more than rounding does."""
    return any(not math.isclose(a.score, b.score, rel_tol=1e-4, abs_tol=1e-6) for a, b in zip(old, new, strict=False))


def score_change(first: Sequence[pb.MemoryItem], second: Sequence[pb.MemoryItem]) -> str:
    """Format the items before and after for a message, from the first that differs."""
    pairs = (([a], [b]) for a, b in zip(first, second, strict=False))
    same = sum(1 for _ in itertools.takewhile(lambda pair: not differs(*pair) and not scores_differ(*pair), pairs))

    def listed(items: Sequence[pb.MemoryItem]) -> str:
        shown = [
            f"{i.text[:24]!r} of {len(i.text)} characters, {i.time}, score {i.score:.5g}" for i in items[same:][:3]
        ]
        return "; ".join(shown) or "no items" + (" more" if same else "")

    return f"{listed(first)} before, {listed(second)} after"


def quoted(fact: Fact) -> str:
    """Format a fact for a message."""
    return f"“{fact.statement[:80]}”"


def seen(items: Sequence[pb.MemoryItem]) -> str:
    """Format the returned items for a message."""
    return "no items" if not items else f"{len(items)} items, the first {items[0].text[:80]!r}"
