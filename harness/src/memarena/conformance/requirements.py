"""Defines when a check applies: which capability a backend must declare, or which option an operator must pass."""

from __future__ import annotations

from collections.abc import Callable

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import Applies


def _if(holds: Callable[[BackendUnderTest], bool], otherwise: str) -> Applies:
    return lambda backend: None if holds(backend) else otherwise


def _all(*requirements: Applies) -> Applies:
    return lambda backend: next((why for each in requirements if (why := each(backend)) is not None), None)


def _declared(capability: pb.Capability.ValueType) -> Applies:
    name = pb.Capability.Name(capability).removeprefix("CAPABILITY_")
    return _if(lambda backend: backend.has(capability), f"{name} is not declared")


def _undeclared(capability: pb.Capability.ValueType, more: str = "") -> Applies:
    name = pb.Capability.Name(capability).removeprefix("CAPABILITY_")
    return _if(lambda backend: not backend.has(capability), f"{name} is declared{more}")


answer, no_answer = _declared(pb.CAPABILITY_ANSWER), _undeclared(pb.CAPABILITY_ANSWER)
forget, no_forget = _declared(pb.CAPABILITY_FORGET), _undeclared(pb.CAPABILITY_FORGET)
time_travel = _declared(pb.CAPABILITY_TIME_TRAVEL)
stable_search = _undeclared(pb.CAPABILITY_STATEFUL_SEARCH)
token_per_call = _undeclared(pb.CAPABILITY_CELL_MODEL_ACCESS)
our_reader = _all(answer, _undeclared(pb.CAPABILITY_OWN_MODEL))
words = _if(lambda backend: backend.keeps_words, "RETENTION_EXTRACTED is declared: words may be lost")
extraction = _if(lambda backend: not backend.keeps_words, "words are kept")
diagnostic = _if(lambda backend: backend.diagnostic, "the backend is a competitor")
competitor = _if(lambda backend: not backend.diagnostic, "the backend is a diagnostic")
recall = _all(words, competitor)
"""Words are kept and no evidence is sent, so the backend itself must find the items."""
ranking = _all(recall, stable_search)
"""The same search returns one order, which the backend itself determines."""
forget_of_words = _all(forget, words)
stable_time_travel = _all(time_travel, stable_search)
stable_words = _all(words, stable_search)
words_and_our_reader = _all(words, our_reader)
counts_bytes = _if(
    lambda backend: backend.described.token_counting != pb.TOKEN_COUNTING_OWN_TOKENIZER,
    "the backend counts with its own tokenizer",
)
concurrent_calls = _all(
    _undeclared(pb.CAPABILITY_CELL_MODEL_ACCESS, ": one call at a time on the whole backend"),
    _if(
        lambda backend: backend.described.limits.max_concurrent_namespaces != 1,
        "at most one namespace at a time is declared",
    ),
)
words_at_the_same_time = _all(words, concurrent_calls)
restart = _if(lambda backend: backend.restart is not None, "no --restart-command was passed")
log = _if(lambda backend: backend.log is not None, "no --log was passed")
token = _if(lambda backend: backend.wire.security.bearer_token is not None, "no --token-env was passed")
