"""When a check applies: what a backend has to declare, or an operator to give, for it."""

from __future__ import annotations

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.check import Applies
from memarena.conformance.subject import Subject


def _declared(capability: pb.Capability.ValueType) -> Applies:
    name = pb.Capability.Name(capability).removeprefix("CAPABILITY_")
    return lambda subject: None if subject.has(capability) else f"{name} is not declared"


def _undeclared(capability: pb.Capability.ValueType) -> Applies:
    name = pb.Capability.Name(capability).removeprefix("CAPABILITY_")
    return lambda subject: f"{name} is declared" if subject.has(capability) else None


answer = _declared(pb.CAPABILITY_ANSWER)
no_answer = _undeclared(pb.CAPABILITY_ANSWER)
time_travel = _declared(pb.CAPABILITY_TIME_TRAVEL)
no_time_travel = _undeclared(pb.CAPABILITY_TIME_TRAVEL)
stable_search = _undeclared(pb.CAPABILITY_STATEFUL_SEARCH)
token_per_call = _undeclared(pb.CAPABILITY_CELL_MODEL_ACCESS)


def words(subject: Subject) -> str | None:
    """The backend keeps words."""
    return None if subject.keeps_words else "RETENTION_EXTRACTED is declared: words may be lost"


def extraction(subject: Subject) -> str | None:
    """The backend extracts facts."""
    return "words are kept" if subject.keeps_words else None


def diagnostic(subject: Subject) -> str | None:
    """The backend is a diagnostic."""
    return None if subject.diagnostic else "the backend is a competitor"


def competitor(subject: Subject) -> str | None:
    """The backend is no diagnostic."""
    return "the backend is a diagnostic" if subject.diagnostic else None


def counts_bytes(subject: Subject) -> str | None:
    """Tokens are counted in a way that the suite can count too."""
    own = subject.described.token_counting == pb.TOKEN_COUNTING_OWN_TOKENIZER
    return "the backend counts with a tokenizer of its own" if own else None


def item_limit(subject: Subject) -> str | None:
    """The backend declares a limit of items."""
    return None if subject.described.limits.max_items else "no limit of items is declared"


def concurrent_calls(subject: Subject) -> str | None:
    """Calls on several namespaces may come at the same time."""
    if subject.has(pb.CAPABILITY_CELL_MODEL_ACCESS):
        return "CELL_MODEL_ACCESS is declared: one call at a time on the whole backend"
    return (
        "at most one namespace at a time is declared"
        if subject.described.limits.max_concurrent_namespaces == 1
        else None
    )


def restart(subject: Subject) -> str | None:
    """The operator says how the backend is restarted."""
    return None if subject.restart else "no --restart-command was given"


def token(subject: Subject) -> str | None:
    """The backend is set up to demand a token."""
    return None if subject.wire.security.bearer_token is not None else "no --token-env was given"
