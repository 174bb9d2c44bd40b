"""RST: a namespace that was reset has never been, and no other is touched."""

from __future__ import annotations

from functools import partial

from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import expect_refused


@check("rst.required", "GEN-3", "ERR-2", "RST-2")
def required(backend: BackendUnderTest) -> None:
    """A Reset without a namespace is refused by its name, one of a namespace that is not there is OK."""
    expect_refused(partial(backend.wire.reset, ""), "INVALID_ARGUMENT", "Reset without a namespace", field="namespace")
    ns = backend.namespace()
    ns.expect_ok(partial(backend.wire.reset, ns.namespace), "Reset of a namespace that never was")


@check("rst.forgets", "RST-1", "RST-3", "ERR-5")
def forgets(backend: BackendUnderTest) -> None:
    """After a Reset nothing is left, and everything can be sent again."""
    ns, before, after = backend.namespace(), backend.fact(), backend.fact()
    first = ns.frames(ns.session(before.statement), day=5)
    ns.commit(first)
    ns.expect_visible(before)
    ns.expect_ok(partial(backend.wire.reset, ns.namespace), "Reset")
    question = ns.question(before.question)
    ns.refuse(question, "NOT_FOUND", "Search after a Reset")
    # The same question of the same day: what a life before answered is not remembered either.
    other = backend.namespace(ns.namespace)
    second = backend.fact()
    # Under the batch id of the first, which is a new one now.
    other.commit(other.frames(other.session(second.statement, day=5), day=5, batch_id=first[0].header.batch_id))
    other.expect_visible(second)
    other.expect_hidden(before, "its namespace was reset, and its day 5 is another one now")
    other.expect_ok(partial(backend.wire.reset, ns.namespace), "a second Reset")
    again = backend.namespace(ns.namespace)
    again.add(after, day=1)
    again.expect_visible(after)
    for ingested in (before, second):
        again.expect_hidden(ingested, "its namespace was reset")
    if again.commit(first).replayed:
        raise BrokenError("a batch id from before the Reset counts as replayed")
    again.expect_visible(before)
