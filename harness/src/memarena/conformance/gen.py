"""GEN: calls that are given up leave nothing behind, and namespaces do not get in each other's way."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import needs
from memarena.conformance.check import check
from memarena.conformance.days import Fact
from memarena.conformance.errors import BrokenError
from memarena.conformance.models import ReaderScript
from memarena.conformance.subject import Life, Subject

_NAMESPACES = 8


@check("gen.deadline", "GEN-5", "ING-5", "ERR-8", title="a call whose deadline passed leaves its namespace usable")
def deadline(subject: Subject) -> None:
    life, first, second = subject.life(), subject.fact(), subject.fact()
    life.tell(first)
    whole = life.frames(life.session(second.statement))
    with subject.access("Ingest"):
        open_call = subject.wire.open_ingest(whole[:2], subject.patience.deadline_s)
        code = open_call.outlast()
    if code != "DEADLINE_EXCEEDED":
        raise BrokenError(f"an Ingest that never ends was ended with {code} and not by its deadline")
    time.sleep(subject.patience.notice_s)
    life.expect_visible(first)
    life.expect_hidden(second, "the day that it is part of was never ended by a trailer")
    life.commit(whole)
    life.expect_visible(second)
    if subject.has(pb.CAPABILITY_ANSWER):
        _hanging_reader(life)


def _hanging_reader(life: Life) -> None:
    """A reader that says nothing until the deadline of the Answer has passed."""
    gate, subject = threading.Event(), life.subject
    script = ReaderScript(hold_reply=gate)
    received = life.answer(life.answer_request("And then?"), script, deadline_s=subject.patience.deadline_s)
    gate.set()
    if received.refused is None or received.refused.code not in ("DEADLINE_EXCEEDED", "CANCELLED", "UNAVAILABLE"):
        raise BrokenError(f"an Answer whose reader says nothing ended with {received.refused or 'OK'}")
    told = subject.fact()
    life.tell(told)
    life.expect_visible(told)


@check(
    "gen.concurrent",
    "GEN-6",
    "IDN-1",
    title="eight namespaces are worked on at the same time, each for itself",
    applies=needs.concurrent_calls,
)
def concurrent(subject: Subject) -> None:
    count = min(_NAMESPACES, subject.described.limits.max_concurrent_namespaces or _NAMESPACES)
    lives = [subject.life() for _ in range(count)]
    facts = [[subject.fact() for _ in range(2)] for _ in lives]

    def live(life: Life, told: list[Fact]) -> None:
        for fact in told:
            life.tell(fact)
            life.expect_visible(fact)

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(live, life, told) for life, told in zip(lives, facts, strict=True)]:
            done.result()
    for life, others in zip(lives, [*facts[1:], facts[0]], strict=True):
        life.expect_hidden(others[-1], "it was told in another namespace")
