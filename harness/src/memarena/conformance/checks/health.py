"""HLT: health says when the backend can work, and what was confirmed survives its end."""

from __future__ import annotations

import time
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.checks.ingest import cancelled_behind_the_trailer, expect_whole_or_none
from memarena.conformance.errors import BrokenError, SkippedError
from memarena.conformance.expectations import expect_refused
from memarena.conformance.fixtures import Fact, edited_day
from memarena.conformance.wire import SERVICE, RefusedError

RESTART_TIMEOUT_S = 60.0
_POLL_S = 0.05


@check("hlt.first-ingest", "HLT-1")
def first_ingest(backend: BackendUnderTest) -> None:
    """As soon as health is SERVING an Ingest is accepted."""
    if (day := _first_day(backend)) is not None:
        backend.keep(day[0])
        backend.first_day = day


def _first_day(backend: BackendUnderTest) -> tuple[NamespaceFixture, list[pb.IngestRequest], Fact] | None:
    """Ingest a day as soon as health is SERVING; None if its digest is refused, which dig.gate reports."""
    ns, fact = backend.namespace(), backend.fact()
    frames = ns.frames(ns.session(fact.statement))
    try:
        backend.ingest(frames)
    except RefusedError as error:
        if error.code == "DATA_LOSS":
            return None
        raise BrokenError(f"health is SERVING, but the first Ingest was refused: {error}") from error
    ns.note(frames)
    return ns, frames, fact


@check("hlt.serving", "GEN-1", "HLT-1")
def serving(backend: BackendUnderTest) -> None:
    """Health is SERVING for the server and for the service, and NOT_FOUND for another one."""
    for service in ("", SERVICE):
        _expect_serving(backend, service)
    for other in ("Other", "memarena.v1.Other", "memarena.v1", "MemoryBackend", f"{SERVICE}s", SERVICE.upper()):
        expect_refused(partial(backend.wire.health, other), "NOT_FOUND", f"Health of {other}")


@check("hlt.first-batch", "ING-8", "ING-7", "TXT-3")
def first_batch(backend: BackendUnderTest) -> None:
    """The day that was ingested first is still known at the end."""
    if backend.first_day is None:
        raise SkippedError("hlt.first-ingest was not run, or ingested nothing")
    ns, frames, fact = backend.first_day
    if not backend.has(pb.CAPABILITY_DURABLE) and backend.restart is not None:
        raise SkippedError("without DURABLE a restart during the run may have ended the first life")
    ns.replay(frames, "a replay of the first day of the run, in whose namespace nothing but time has passed,")
    ns.expect_visible(fact)


@check("hlt.after-errors", "HLT-4")
def after_errors(backend: BackendUnderTest) -> None:
    """Health is SERVING all the time while a life is ingested and asked, and after all that was done."""
    if other := backend.unwell:
        raise BrokenError(f"while a life was ingested and asked, {len(other)} answers of health were {other[0]}")
    _expect_serving(backend, SERVICE)


def _expect_serving(backend: BackendUnderTest, service: str) -> None:
    name = f"Health of {service!r}"
    try:
        status = backend.wire.health(service)
    except RefusedError as error:
        raise BrokenError(f"{name} was refused: {error}") from error
    if status != "SERVING":
        raise BrokenError(f"{name} is {status}")


@check("hlt.restart", "HLT-3", "ING-7", "ING-5", "RST-1", applies=requirements.restart)
def restart(backend: BackendUnderTest) -> None:
    """After SIGKILL and a restart every confirmed day is there, and nothing of another."""
    ns, fact, half = backend.namespace(), backend.fact(), backend.fact()
    first = ns.frames(ns.session("Good morning."), ns.session(fact.statement))
    ns.commit(first)
    ns.expect_visible(fact)
    later = backend.fact()
    ns.add(later, day=2)
    refused = backend.fact()
    wrong = edited_day(ns.frames(ns.session(refused.statement)), "trailer.digest", bytes(32), seal=False)
    ns.refuse(wrong, "DATA_LOSS", "a digest of zeros")
    gone = backend.namespace()
    for _ in range(3):
        gone.add(backend.fact())
    gone.expect_ok(partial(backend.wire.reset, gone.namespace), "Reset")
    second = ns.frames(ns.session(half.statement), ns.session("Good night."))
    cut, earlier = backend.filled()
    sent = cancelled_behind_the_trailer(cut)
    with backend.access("Ingest"):
        open_call = backend.wire.open_ingest(second[:2], backend.wire.timeout_s)
        open_call.wait_until_sent()
        try:
            restarted(backend)
        finally:
            open_call.cancel()
    if not backend.has(pb.CAPABILITY_DURABLE):
        ns.refuse(ns.question(fact.question), "NOT_FOUND", "Search after a restart without DURABLE")
        return
    what = "Search of a namespace of three days that was reset before SIGKILL"
    gone.refuse(gone.question("What?", as_of_day=0), "NOT_FOUND", what)
    ns.expect_visible(fact)
    expect_whole_or_none(cut, *sent, " and then by SIGKILL")
    cut.expect_visible(earlier)  # only now is it known which day is the last one
    ns.expect_hidden(half, "the stream that it came in was cut off by SIGKILL")
    ns.expect_hidden(refused, "its day was refused as DATA_LOSS before SIGKILL")
    ns.replay(first, "a replay after a restart")
    _as_before(ns, first, fact, later)
    ns.commit(second)
    ns.expect_visible(half)


def _as_before(ns: NamespaceFixture, first: list[pb.IngestRequest], fact: Fact, later: Fact) -> None:
    """Expect the days as before the restart: their order, their digests, and the content of each."""
    backend = ns.backend
    ns.expect_visible(later)
    other = ns.frames(ns.session("Good day."), day=0, batch_id=first[0].header.batch_id)
    ns.refuse(other, "ALREADY_EXISTS", "after a restart, a known batch id, other digest,")
    back = ns.frames(ns.session("Good day."), day=1)
    ns.refuse(back, "FAILED_PRECONDITION", "after a restart, a new batch for day 1")
    if backend.has(pb.CAPABILITY_TIME_TRAVEL):
        ns.expect_visible(fact, as_of_day=1)
        ns.expect_hidden(later, "it was ingested on day 2, after day 1, and the backend was restarted", as_of_day=1)


def restarted(backend: BackendUnderTest) -> None:
    """Kill the backend and wait until it serves again."""
    assert backend.restart is not None
    backend.restart()
    deadline = time.monotonic() + RESTART_TIMEOUT_S
    while True:
        try:
            _expect_serving(backend, SERVICE)
            break
        except BrokenError as error:
            if time.monotonic() > deadline:
                raise BrokenError(f"within {RESTART_TIMEOUT_S:g} s of the restart: {error}") from error
        time.sleep(_POLL_S)
    _first_day(backend)
