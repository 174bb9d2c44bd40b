"""MOD: models are called through the gateway alone, with the token of the call, and never after its return."""

from __future__ import annotations

import time
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError, SkippedError
from memarena.conformance.scripted_models import REFUSALS, ModelCall, Phase
from memarena.conformance.wire import RefusedError

_FOREIGN: tuple[Phase, ...] = ("unknown_token", "not_offered", "no_such_path")


def _calls(backend: BackendUnderTest) -> list[ModelCall]:
    """Return every model call of the run so far, with those of an ingest, a search and an answer made for it once."""
    if not backend.linger_until:
        ns, fact = backend.filled()
        ns.expect_visible(fact)
        if backend.has(pb.CAPABILITY_ANSWER):
            ns.answer(ns.answer_request(fact.question))
        backend.linger_until = time.monotonic() + backend.patience.linger_s
    if not backend.models.calls:
        raise SkippedError("the backend has called no model")
    return list(backend.models.calls)


@check("mod.offered-models", "MOD-1", "MOD-2", "MOD-4")
def offered_models(backend: BackendUnderTest) -> None:
    """Every model call carries a token that was issued, for a model that was offered, to a path below base_url."""
    for call in _calls(backend):
        if call.phase in _FOREIGN:
            raise BrokenError(f"a call to {call.path} for the model {call.model!r}: {REFUSALS[call.phase][1]}")


@check("mod.without-access", "MOD-6")
def without_access(backend: BackendUnderTest) -> None:
    """Without model access no model is called, and none is needed in silence."""
    ns, fact = backend.namespace(), backend.fact()
    with backend.models.recording() as calls:
        try:
            frames = ns.frames(ns.session(fact.statement))
            backend.retried(partial(backend.wire.ingest, frames))
            ns.note(frames)
            backend.retried(partial(backend.wire.search, ns.question(fact.question)))
        except RefusedError as error:
            ns.skip_for_the_digest(error)
            if error.code != "INVALID_ARGUMENT" or not any(field.endswith("model_access") for field in error.fields):
                raise BrokenError(
                    f"without model access: expected OK or INVALID_ARGUMENT naming model_access, got {error}"
                ) from error
    made = [call for call in calls if call.phase not in ("after_return", "abandoned")]  # those are mod.after-return's
    if made:
        raise BrokenError(f"a call without model access called a model at {made[0].path}")


@check("mod.after-return", "MOD-3", "ING-7", "MOD-2", applies=requirements.token_per_call)
def after_return(backend: BackendUnderTest) -> None:
    """No token is used after the return of its call."""
    _calls(backend)
    time.sleep(max(0.0, backend.linger_until - time.monotonic()))
    if late := [call for call in _calls(backend) if call.phase == "after_return" and call.label]:
        raise BrokenError(
            f"{len(late)} model calls came after the return of their call, first of {late[0].label} to {late[0].path}"
        )
