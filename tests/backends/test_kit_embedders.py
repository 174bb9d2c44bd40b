"""Tests that a namespace keeps the embedding model of its first vectors, whatever model a later call offers."""

from __future__ import annotations

import grpc
import pytest
from memarena_backend import Call, CallError, Model, ModelAccess, ModelClient, ModelRole
from memarena_backend.embedders import IN_PROCESS, Embedders


def _call(*embedders: str) -> Call:
    models = tuple(Model(name, ModelRole.EMBEDDER, 0, False, False) for name in embedders)
    return Call(None, ModelAccess("http://127.0.0.1:1/v1", "token", models))


@pytest.fixture
def embedders() -> Embedders:
    return Embedders(ModelClient())


def test_a_new_namespace_uses_the_offered_model_or_the_built_in_one(embedders: Embedders) -> None:
    assert embedders.choose(_call("one"), None, "f").model == "one"
    inside = embedders.choose(Call.internal(), None, "f")
    assert inside.model == IN_PROCESS
    assert embedders.choose(_call(), None, "f") is inside, "it is loaded once"


def test_a_namespace_embedded_by_the_built_in_model_keeps_it(embedders: Embedders) -> None:
    assert embedders.choose(_call("one"), IN_PROCESS, "f").model == IN_PROCESS


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (Call.internal(), grpc.StatusCode.INVALID_ARGUMENT, "f: the embedder one is required"),
        (_call(), grpc.StatusCode.INVALID_ARGUMENT, "f: the embedder one is required"),
        (_call("two"), grpc.StatusCode.FAILED_PRECONDITION, "embedded with one, not two"),
    ],
)
def test_without_its_model_a_namespace_is_refused(
    embedders: Embedders, call: Call, code: grpc.StatusCode, words: str
) -> None:
    with pytest.raises(CallError, match=words) as raised:
        embedders.choose(call, "one", "f")
    assert raised.value.code is code


def test_a_memory_may_always_use_the_built_in_model() -> None:
    assert Embedders(ModelClient(), only_in_process=True).choose(_call("one"), None, "f").model == IN_PROCESS
