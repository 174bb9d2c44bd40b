"""GEN: calls that are abandoned leave nothing behind, and namespaces do not get in each other's way."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import expect_refused, mentions, quoted, shows
from memarena.conformance.fixtures import Fact
from memarena.conformance.scripted_models import ReaderScript
from memarena.conformance.wire import SERVICE, RefusedError

_NAMESPACES, _STREAMS = 8, 24
_POLL_S = 0.01
_GIVEN_UP = ("DEADLINE_EXCEEDED", "CANCELLED", "UNAVAILABLE")
_BESIDE_S = 10.0
"""Deadline of a call on a namespace while another one is busy."""


@check("gen.deadline", "GEN-5", "ING-5", "ERR-8")
def deadline(backend: BackendUnderTest) -> None:
    """A call whose deadline passed leaves its namespace usable."""
    (ns, first), second = backend.filled(), backend.fact()
    whole = ns.frames(ns.session(second.statement))
    with backend.access("Ingest"):
        open_call = backend.wire.open_ingest(whole[:2], backend.patience.deadline_s)
        code = open_call.outlast()
    if code != "DEADLINE_EXCEEDED":
        raise BrokenError(f"an Ingest that never ends was ended with {code} and not by its deadline")
    time.sleep(backend.patience.notice_s)
    ns.expect_visible(first)
    ns.expect_hidden(second, "the day that it is part of was never ended by a trailer")
    ns.commit(whole)
    ns.expect_visible(second)
    if requirements.our_reader(backend) is None:
        for leaves in (False, True):
            _abandoned_answer(ns, leaves=leaves)


class _EnoughError(Exception):
    """The caller wants no more of an answer."""


def _abandoned_answer(ns: NamespaceFixture, *, leaves: bool) -> None:
    """Abandon an Answer while its reader is silent: the caller leaves, or the deadline passes. Then ingest a day."""
    gate, backend = threading.Event(), ns.backend
    script = ReaderScript(hold_reply=gate)

    def go(_: pb.AnswerEvent) -> None:
        end = time.monotonic() + backend.patience.hold_s
        while leaves and not script.calls and time.monotonic() < end:
            time.sleep(_POLL_S)  # no model call comes late: see mod.after-return
        if leaves:
            raise _EnoughError

    with suppress(_EnoughError):
        deadline_s = None if leaves else backend.patience.deadline_s
        received = ns.answer(ns.answer_request("And then?"), script, on_event=go, deadline_s=deadline_s)
        if received.refused is None or received.refused.code not in _GIVEN_UP:
            raise BrokenError(f"an Answer whose reader says nothing ended with {received.refused or 'OK'}")
    gate.set()
    frames, how = ns.frames(ns.session((ingested := backend.fact()).statement)), "cancelled" if leaves else "too late"
    ns.expect_ok(partial(backend.ingest, frames), f"a day after an Answer that was {how} while the reader was asked")
    ns.note(frames)
    ns.expect_visible(ingested)


@check("gen.concurrent", "GEN-6", "IDN-1", applies=requirements.concurrent_calls)
def concurrent(backend: BackendUnderTest) -> None:
    """Eight namespaces are worked on at the same time, each for itself."""
    count = min(_NAMESPACES, backend.described.limits.max_concurrent_namespaces or _NAMESPACES)
    namespaces = [backend.namespace() for _ in range(count)]
    facts = [[backend.fact() for _ in range(2)] for _ in namespaces]

    def live(ns: NamespaceFixture, ingested: list[Fact]) -> None:
        for fact in ingested:
            ns.add(fact)
            # Without waiting: under load, too, what was answered with OK is there, and nothing of the others is.
            items = ns.search(fact.question).items
            if not shows(items, fact, verbatim=backend.keeps_words):
                raise BrokenError(f"under load {quoted(fact)} was committed, but the next Search does not find it")
            for foreign in (each for other in facts if other is not ingested for each in other):
                if mentions(items, foreign):
                    raise BrokenError(f"under load {quoted(foreign)} of another namespace is returned")

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(live, ns, ingested) for ns, ingested in zip(namespaces, facts, strict=True)]:
            done.result()


@check("gen.independent", "GEN-6", "HLT-4", applies=requirements.concurrent_calls)
def independent(backend: BackendUnderTest) -> None:
    """While a day of one namespace arrives, others are worked on and health is SERVING."""
    slow = backend.namespace(f"{backend.new_id()}-a/b")
    name = slow.namespace
    others = [backend.namespace(near) for near in (name.swapcase(), f"{name}c", name[:-2], name.replace("/", "_"))]
    facts = [(backend.fact(), backend.fact()) for _ in others]
    for other, (ingested, _) in zip(others, facts, strict=True):
        other.add(ingested)
        other.expect_visible(ingested)
    before = backend.wire.health(SERVICE)
    half = slow.frames(slow.session("Good morning."), slow.session("Good night."))[:2]
    with backend.access("Ingest"):
        open_call = backend.wire.open_ingest(half, backend.wire.timeout_s)
        try:
            open_call.wait_until_sent()
            time.sleep(backend.patience.notice_s)
            what = f"while a day of {name} arrives"
            if (status := backend.wire.health(SERVICE)) != before:
                raise BrokenError(f"{what}, health is {status}, before it was {before}")
            for other, (ingested, later) in zip(others, facts, strict=True):
                try:
                    # Not tried again: nothing is pending on this namespace.
                    returned = backend.search(other.question(ingested.question), _BESIDE_S).items
                    backend.ingest(frames := other.frames(other.session(later.statement)), _BESIDE_S)
                except RefusedError as error:
                    other.skip_for_the_digest(error)
                    raise BrokenError(f"{what}, a call on {other.namespace} was refused: {error}") from error
                other.note(frames)
                if not shows(returned, ingested, verbatim=backend.keeps_words):
                    raise BrokenError(f"{what}, {quoted(ingested)} of {other.namespace} is not returned")
        finally:
            open_call.cancel()
    for other, (_, later) in zip(others, facts, strict=True):
        other.expect_visible(later)


@check("gen.many", "LIM-4", "GEN-6", applies=requirements.concurrent_calls)
def many(backend: BackendUnderTest) -> None:
    """A call on one namespace more than are possible at a time waits or is UNAVAILABLE."""
    most, opened = backend.described.limits.max_concurrent_namespaces or _STREAMS, []
    try:
        for ns in [backend.namespace() for _ in range(min(most, _STREAMS))]:
            frames = ns.frames(ns.session("Good morning."))[:2]
            opened.append(backend.wire.open_ingest(frames, backend.wire.timeout_s))
            opened[-1].wait_until_sent()
        time.sleep(backend.patience.notice_s)
        ns = backend.namespace()
        backend.ingest(ns.frames(ns.session("Good night.")), backend.patience.deadline_s)
    except RefusedError as error:
        ns.skip_for_the_digest(error)
        if error.code not in _GIVEN_UP:
            what = f"while days of {len(opened)} namespaces arrive, an Ingest into another"
            raise BrokenError(f"{what}: expected OK, a wait or UNAVAILABLE, got {error}") from error
    finally:
        for open_call in opened:
            open_call.cancel()


@check("gen.mandatory", "GEN-2", "ERR-4")
def mandatory(backend: BackendUnderTest) -> None:
    """Ingest, Search and Reset are implemented, and what the contract does not have is UNIMPLEMENTED."""
    expect_refused(partial(backend.wire.raw, "Rewind", b""), "UNIMPLEMENTED", "an RPC named Rewind")
    if backend.missing_rpcs:
        raise BrokenError(f"{', '.join(sorted(backend.missing_rpcs))}: UNIMPLEMENTED")
