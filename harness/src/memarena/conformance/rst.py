"""RST: a namespace that was reset has never been, and no other is touched."""

from __future__ import annotations

from functools import partial

from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.subject import Subject, expect_refused


@check("rst.required", "GEN-3", "ERR-2", title="a Reset without a namespace is refused by its name")
def required(subject: Subject) -> None:
    expect_refused(partial(subject.wire.reset, ""), "INVALID_ARGUMENT", "Reset without a namespace", field="namespace")


@check("rst.absent", "RST-2", title="a namespace that is not there can be reset")
def absent(subject: Subject) -> None:
    life = subject.life()
    life.expect_ok(partial(subject.wire.reset, life.namespace), "Reset of a namespace that never was")


@check("rst.forgets", "RST-1", "RST-3", "ERR-5", title="after a Reset nothing is left, and everything can be sent anew")
def forgets(subject: Subject) -> None:
    life, before, after = subject.life(), subject.fact(), subject.fact()
    first = life.frames(life.session(before.statement), day=5)
    life.commit(first)
    life.expect_visible(before)
    life.expect_ok(partial(subject.wire.reset, life.namespace), "Reset")
    question = life.question(before.question)
    expect_refused(partial(subject.search, question), "NOT_FOUND", "Search after a Reset")
    again = subject.life(life.namespace)
    again.tell(after, day=1)
    again.expect_visible(after)
    again.expect_hidden(before, "its namespace was reset")
    if again.commit(first).replayed:
        raise BrokenError("a batch id from before the Reset counts as replayed")
    again.expect_visible(before)


@check("rst.others", "RST-4", title="a Reset leaves other namespaces as they are")
def others(subject: Subject) -> None:
    one, other, fact = subject.life(), subject.life(), subject.fact()
    near = subject.life(f"{one.namespace}0")
    one.tell(subject.fact())
    other.tell(fact)
    near.tell(kept := subject.fact())
    one.expect_ok(partial(subject.wire.reset, one.namespace), "Reset")
    other.expect_visible(fact)
    near.expect_visible(kept)
