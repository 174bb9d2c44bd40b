"""HLT: health says when the backend can work, and what was confirmed survives its end."""

from __future__ import annotations

import time
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import needs
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.subject import Subject, expect_refused
from memarena.conformance.wire import SERVICE, RefusedError

RESTART_TIMEOUT_S = 60.0
_POLL_S = 0.05


@check("hlt.first-ingest", "HLT-1", title="as soon as health is SERVING an Ingest is taken")
def first_ingest(subject: Subject) -> None:
    life, fact = subject.life(), subject.fact()
    frames = life.frames(life.session(fact.statement))
    try:
        subject.ingest(frames)
    except RefusedError as error:
        raise BrokenError(f"health is SERVING, but the first Ingest was refused: {error}") from error


@check("hlt.serving", "GEN-1", "HLT-1", title="health is SERVING for the server and for the service")
def serving(subject: Subject) -> None:
    for service in ("", SERVICE):
        _expect_serving(subject, service)


@check("hlt.unknown-service", "HLT-1", title="health of a service that is not there is NOT_FOUND")
def unknown_service(subject: Subject) -> None:
    call = partial(subject.wire.health, "no.such.Service")
    expect_refused(call, "NOT_FOUND", "Health of no.such.Service")


@check("hlt.after-errors", "HLT-4", title="health is still SERVING after all that was done to the backend")
def after_errors(subject: Subject) -> None:
    _expect_serving(subject, SERVICE)


def _expect_serving(subject: Subject, service: str) -> None:
    name = f"Health of {service!r}"
    try:
        status = subject.wire.health(service)
    except RefusedError as error:
        raise BrokenError(f"{name} was refused: {error}") from error
    if status != "SERVING":
        raise BrokenError(f"{name} is {status}")


@check(
    "hlt.restart",
    "HLT-3",
    "ING-7",
    "ING-5",
    title="after SIGKILL and a restart every confirmed day is there, and nothing of another",
    applies=needs.restart,
)
def restart(subject: Subject) -> None:
    assert subject.restart is not None
    life, fact, half = subject.life(), subject.fact(), subject.fact()
    first = life.frames(life.session(fact.statement))
    life.commit(first)
    life.expect_visible(fact)
    second = life.frames(life.session(half.statement), life.session("Good night."))
    with subject.access("Ingest"):
        open_call = subject.wire.open_ingest(second[:2], subject.wire.timeout_s)
        open_call.wait_until_sent()
        try:
            subject.restart()
        finally:
            open_call.cancel()
    _await_serving(subject)
    if not subject.has(pb.CAPABILITY_DURABLE):
        question = life.question(fact.question)
        expect_refused(partial(subject.search, question), "NOT_FOUND", "Search after a restart without DURABLE")
        return
    life.expect_visible(fact)
    life.expect_hidden(half, "the stream that it came in was cut off by SIGKILL")
    replayed = life.expect_ok(partial(subject.ingest, first), "a replay after a restart")
    if not replayed.replayed:
        raise BrokenError("a day that was confirmed before SIGKILL is not known after it")
    life.commit(second)
    life.expect_visible(half)


def _await_serving(subject: Subject) -> None:
    deadline = time.monotonic() + RESTART_TIMEOUT_S
    last = ""
    while time.monotonic() < deadline:
        try:
            last = subject.wire.health(SERVICE, deadline_s=2.0)
        except RefusedError as error:
            last = str(error)
        if last == "SERVING":
            return
        time.sleep(_POLL_S)
    raise BrokenError(f"not SERVING within {RESTART_TIMEOUT_S:g} s of the restart: {last}")
