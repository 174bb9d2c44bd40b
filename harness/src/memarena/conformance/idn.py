"""IDN: a namespace is one life, and ids are opaque bytes."""

from __future__ import annotations

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.limits import ID_BYTES
from memarena.conformance.subject import Subject, mentions
from memarena.conformance.wire import RefusedError


@check("idn.isolated", "IDN-1", "GEN-4", title="two namespaces do not see each other")
def isolated(subject: Subject) -> None:
    one, other = subject.life(), subject.life()
    ours, theirs = subject.fact(), subject.fact()
    one.tell(ours)
    other.tell(theirs)
    one.expect_visible(ours)
    other.expect_visible(theirs)
    one.expect_hidden(theirs, "it was told in another namespace")
    other.expect_hidden(ours, "it was told in another namespace")
    if subject.diagnostic:
        request = one.question(theirs.question)
        foreign = [session.session_id for session in other.sessions]
        request.privileged_evidence.CopyFrom(pb.PrivilegedEvidence(session_ids=foreign))
        try:
            found = subject.search(request)
        except RefusedError:
            return  # evidence that is not there may be refused
        if mentions(found.items, theirs):
            raise BrokenError("evidence that names a session of another namespace shows that session")


@check("idn.near-names", "IDN-3", title="namespaces whose names are nearly the same are different ones")
def near_names(subject: Subject) -> None:
    stem = subject.new_id()
    names = [f"{stem}n1", f"{stem}n10", f"{stem}N1", f"{stem}n_1", f"{stem}nx1", f"{stem}n%", f"{stem}n*", f"{stem}n/1"]
    told = [(subject.life(name), subject.fact()) for name in names]
    for life, fact in told:
        life.tell(fact)
    for number, (life, fact) in enumerate(told):
        life.expect_visible(fact)
        for other, foreign in told[:number] + told[number + 1 :]:
            life.expect_hidden(foreign, f"it was told in {other.namespace}, not in {life.namespace}")


@check("idn.any-id", "IDN-4", "IDN-2", title="every printable ASCII character may stand in an id")
def any_id(subject: Subject) -> None:
    printable = "".join(chr(code) for code in range(0x21, 0x7F))
    stem = subject.new_id()
    life, fact = subject.life((stem + printable)[:ID_BYTES]), subject.fact()
    session = life.session(fact.statement)
    session.session_id = f"s{printable}"
    session.turns[0].turn_id = f"t{printable}"
    session.participants[1].participant_id = f"p{printable}"
    life.commit(life.frames(session, batch_id=f"b{printable}"))
    life.expect_visible(fact)
