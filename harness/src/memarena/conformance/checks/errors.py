"""ERR: what is not there has its own codes, and no error leaves anything broken."""

from __future__ import annotations

from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.fixtures import edited_day
from memarena.conformance.wire import RefusedError


@check("err.unknown-namespace", "ERR-5")
def unknown_namespace(backend: BackendUnderTest) -> None:
    """A namespace without a committed day is NOT_FOUND."""
    ns = backend.namespace()
    question = ns.question("What?")
    ns.refuse(question, "NOT_FOUND", "Search of a namespace that never was")
    spoilt = edited_day(ns.frames(ns.session("Good morning.")), "session.session_id")
    ns.refuse(spoilt, "INVALID_ARGUMENT", "a session without an id")
    ns.refuse(question, "NOT_FOUND", "Search of a namespace of which only failures exist")
    ns.add(backend.fact())
    ns.search("What?")


@check("err.own-namespace", "IDN-1", "ERR-5")
def own_namespace(backend: BackendUnderTest) -> None:
    """No error of a call tells anything of another namespace, here or anywhere in the run."""
    other, ns, never = backend.namespace(), backend.namespace(), backend.namespace()
    foreign = backend.fact()
    other.add(foreign)
    ns.commit(first := ns.frames(ns.session("Good morning."), day=1))
    stranger = pb.ForgetRequest(namespace=never.namespace, session_id=ns.sessions[0].session_id)
    conflict = ns.frames(day=1, batch_id=first[0].header.batch_id)
    for what, call in (
        ("a namespace that never was", partial(backend.search, never.question(foreign.question))),
        ("a known batch id with another digest", partial(backend.ingest, conflict)),
        ("a day that goes back", partial(backend.ingest, ns.frames(day=0))),
        ("a day that is not there yet", partial(backend.search, ns.question("What?", as_of_day=7))),
        ("Forget in a namespace that never was", partial(backend.wire.forget, stranger)),
    ):
        try:
            call()
        except RefusedError as error:  # of which code is for other checks to say
            if foreign.value.lower() in " ".join((error.message, *error.details)).lower():
                raise BrokenError(f"{what}: the error holds {foreign.value!r} of {other.namespace}: {error}") from error
    if backend.wire.names_of_others:
        raise BrokenError(f"{backend.wire.names_of_others[0]} ({len(backend.wire.names_of_others)} of such errors)")
