"""SEC: the token of a backend that demands one, and where a backend goes with the token of the models."""

from __future__ import annotations

from memarena.client.backend import Security
from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError, ConformanceError, SkippedError
from memarena.conformance.expectations import expect_refused
from memarena.conformance.scripted_models import ReaderScript, ScriptedModels
from memarena.conformance.wire import Connection, RefusedError


@check("sec.token", "SEC-3", applies=requirements.token)
def token(backend: BackendUnderTest) -> None:
    """A call without the token, or with another, is UNAUTHENTICATED."""
    wire = backend.wire
    begun = (wire.security.bearer_token or "")[:-1]
    for what, sent in (("no token", None), ("another token", "not-the-token"), ("all but its last sign", begun)):
        with Connection(wire.target, Security(wire.security.tls_ca, sent), wire.timeout_s) as stranger:
            expect_refused(stranger.describe, "UNAUTHENTICATED", f"Describe with {what}")
            question = backend.namespace().question("What?")
            expect_refused(lambda: stranger.search(question), "UNAUTHENTICATED", f"Search with {what}")  # noqa: B023
            status = stranger.health()
            if status != "SERVING":
                raise BrokenError(f"Health with {what} is {status}")


@check("sec.log", "SEC-4", applies=requirements.log)
def log(backend: BackendUnderTest) -> None:
    """No token of the models is in the log."""
    assert backend.log is not None
    try:
        text = backend.log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SkippedError(f"the log {backend.log} cannot be read: {error.strerror}") from error
    written = [token for token in backend.models.tokens() if token in text]
    if written:
        line = next(line for line in text.splitlines() if written[0] in line).replace(written[0], "<token>")
        raise BrokenError(f"{len(written)} tokens of the model access are in the log, the first in {line[:120]!r}")


FOREIGN = "http://203.0.113.7:9/v1"
"""An address that is kept for documentation (RFC 5737): no server answers there."""


@check("sec.redirect", "SEC-6", applies=requirements.our_reader)
def redirect(backend: BackendUnderTest) -> None:
    """A redirect away from base_url is not followed."""
    ns, fact = backend.filled()
    try:
        elsewhere = ScriptedModels(None, host="127.0.0.2")
    except ConformanceError as error:
        raise SkippedError(f"no other host to send a backend to: {error}") from error
    try:
        script = ReaderScript(redirect=f"{elsewhere.base_url}/chat/completions")
        ns.answer(ns.answer_request(fact.question), script)
        if elsewhere.calls:
            raise BrokenError(f"a redirect from {backend.models.base_url} to {elsewhere.base_url} was followed")
    finally:
        elsewhere.close()


@check("sec.base-url", "SEC-6", advisory=True)
def base_url(backend: BackendUnderTest) -> None:
    """A base_url on a host that is not the caller's is refused by name."""
    ns, fact = backend.filled()
    request = ns.question(fact.question)
    with backend.access("Search") as access:
        request.model_access.CopyFrom(access)
        request.model_access.base_url = FOREIGN
        try:
            backend.wire.search(request)
        except RefusedError as error:
            if error.code == "INVALID_ARGUMENT":
                return
            raise BrokenError(f"a base_url of a foreign host ({FOREIGN}) ends as {error}") from error
    raise BrokenError(f"a base_url of a foreign host ({FOREIGN}) is accepted: sound on loopback alone")
