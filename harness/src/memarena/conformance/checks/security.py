"""SEC: a backend that is set up to demand a token demands it of every call but health."""

from __future__ import annotations

from memarena.client.backend import Security
from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import expect_refused
from memarena.conformance.wire import Connection


@check(
    "sec.token",
    "SEC-3",
    title="a call without the token, or with another, is UNAUTHENTICATED",
    applies=requirements.token,
)
def token(backend: BackendUnderTest) -> None:
    wire = backend.wire
    for what, sent in (("no token", None), ("another token", "not-the-token")):
        with Connection(wire.target, Security(wire.security.tls_ca, sent), wire.timeout_s) as stranger:
            expect_refused(stranger.describe, "UNAUTHENTICATED", f"Describe with {what}")
            question = backend.namespace().question("What?")
            expect_refused(lambda: stranger.search(question), "UNAUTHENTICATED", f"Search with {what}")  # noqa: B023
            status = stranger.health()
            if status != "SERVING":
                raise BrokenError(f"Health with {what} is {status}")
