"""When a check applies: what a backend has to declare, or an operator to give, for it."""

from __future__ import annotations

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import Applies


def _declared(capability: pb.Capability.ValueType) -> Applies:
    name = pb.Capability.Name(capability).removeprefix("CAPABILITY_")
    return lambda backend: None if backend.has(capability) else f"{name} is not declared"


def _undeclared(capability: pb.Capability.ValueType) -> Applies:
    name = pb.Capability.Name(capability).removeprefix("CAPABILITY_")
    return lambda backend: f"{name} is declared" if backend.has(capability) else None


answer = _declared(pb.CAPABILITY_ANSWER)
no_answer = _undeclared(pb.CAPABILITY_ANSWER)
forget = _declared(pb.CAPABILITY_FORGET)
no_forget = _undeclared(pb.CAPABILITY_FORGET)
time_travel = _declared(pb.CAPABILITY_TIME_TRAVEL)
no_time_travel = _undeclared(pb.CAPABILITY_TIME_TRAVEL)
stable_search = _undeclared(pb.CAPABILITY_STATEFUL_SEARCH)
token_per_call = _undeclared(pb.CAPABILITY_CELL_MODEL_ACCESS)


def our_reader(backend: BackendUnderTest) -> str | None:
    """The backend answers with the reader that it is offered."""
    return answer(backend) or _undeclared(pb.CAPABILITY_OWN_MODEL)(backend)


def words(backend: BackendUnderTest) -> str | None:
    """The backend keeps words."""
    return None if backend.keeps_words else "RETENTION_EXTRACTED is declared: words may be lost"


def recall(backend: BackendUnderTest) -> str | None:
    """The backend keeps words and is sent no evidence, so that what is returned is for it to say."""
    return words(backend) or competitor(backend)


def ranking(backend: BackendUnderTest) -> str | None:
    """The same search has one order, made by the backend itself."""
    return recall(backend) or stable_search(backend)


def forget_of_words(backend: BackendUnderTest) -> str | None:
    """The backend keeps words and forgets what it is asked to."""
    return forget(backend) or words(backend)


def stable_time_travel(backend: BackendUnderTest) -> str | None:
    """An earlier day can be asked for, and asking changes nothing."""
    return time_travel(backend) or stable_search(backend)


def extraction(backend: BackendUnderTest) -> str | None:
    """The backend extracts facts."""
    return "words are kept" if backend.keeps_words else None


def diagnostic(backend: BackendUnderTest) -> str | None:
    """The backend is a diagnostic."""
    return None if backend.diagnostic else "the backend is a competitor"


def competitor(backend: BackendUnderTest) -> str | None:
    """The backend is no diagnostic."""
    return "the backend is a diagnostic" if backend.diagnostic else None


def counts_bytes(backend: BackendUnderTest) -> str | None:
    """Tokens are counted in a way that the suite can count too."""
    own = backend.described.token_counting == pb.TOKEN_COUNTING_OWN_TOKENIZER
    return "the backend counts with its own tokenizer" if own else None


def item_limit(backend: BackendUnderTest) -> str | None:
    """The backend declares a limit of items."""
    return None if backend.described.limits.max_items else "no limit of items is declared"


def concurrent_calls(backend: BackendUnderTest) -> str | None:
    """Calls on several namespaces may come at the same time."""
    if backend.has(pb.CAPABILITY_CELL_MODEL_ACCESS):
        return "CELL_MODEL_ACCESS is declared: one call at a time on the whole backend"
    return (
        "at most one namespace at a time is declared"
        if backend.described.limits.max_concurrent_namespaces == 1
        else None
    )


def restart(backend: BackendUnderTest) -> str | None:
    """The operator says how the backend is restarted."""
    return None if backend.restart else "no --restart-command was passed"


def log(backend: BackendUnderTest) -> str | None:
    """The operator says where the backend logs to."""
    return None if backend.log else "no --log was passed"


def token(backend: BackendUnderTest) -> str | None:
    """The backend is set up to demand a token."""
    return None if backend.wire.security.bearer_token is not None else "no --token-env was passed"
