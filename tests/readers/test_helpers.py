"""Tests helper models (embedder, reranker, extractor): start or one-line error, role, restart after their death."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from memarena.execution.errors import RunError
from memarena.execution.models.model_pool import HelperPool
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.gateway import CallContext, Gateway
from memarena.log.records import GatewayCall
from memarena.readers.embedding_server import texts_of
from memarena.readers.errors import ReaderError
from memarena.readers.helpers import HelperRole, start_helper

from tests.support.model_script import DIMENSIONS, Script
from tests.support.model_server import ModelServer


def test_an_embedder_behind_a_url_is_probed_first(tmp_path: Path) -> None:
    with ModelServer(model="nomic-embed-text") as server:
        helper = start_helper("embedder", server.base_url, work_dir=tmp_path)
    assert (helper.ref.name, helper.ref.details, helper.upstream.role) == (
        "nomic-embed-text",
        {"dimension": str(DIMENSIONS)},
        "embedder",
    )


def test_a_reranker_behind_a_url_is_probed_first(tmp_path: Path) -> None:
    with ModelServer(model="bge-reranker") as server:
        assert start_helper("reranker", server.base_url, work_dir=tmp_path).upstream.role == "reranker"
        assert [request.route for request in server.received] == ["/v1/models", "/v1/rerank"]


def test_an_extractor_is_a_reader_with_another_role(tmp_path: Path) -> None:
    with ModelServer(model="big-model", dialect="llama.cpp", window_tokens=4096) as server:
        helper = start_helper("extractor", server.base_url, work_dir=tmp_path)
    assert (helper.upstream.role, helper.upstream.context_window_tokens) == ("extractor", 4096)


@pytest.mark.parametrize(
    ("role", "spec", "complaint"),
    [
        ("embedder", "e5", "--embedder e5: expected embedded or an http(s) URL"),
        ("reranker", "embedded", "--reranker embedded: expected an http(s) URL"),
        ("extractor", "embedded", "--extractor embedded: expected an http(s) URL"),
        ("embedder", "http://127.0.0.1:9/v1", "--embedder http://127.0.0.1:9/v1: http://127.0.0.1:9/v1: GET "),
    ],
)
def test_an_unusable_helper_is_named_by_its_flag(tmp_path: Path, role: HelperRole, spec: str, complaint: str) -> None:
    with pytest.raises(ReaderError) as failure:
        start_helper(role, spec, work_dir=tmp_path)
    assert str(failure.value).startswith(complaint)
    assert "\n" not in str(failure.value)


def test_a_server_without_embeddings_is_refused(tmp_path: Path) -> None:
    script = Script(status=501, message="no embeddings here")
    refused = pytest.raises(ReaderError, match=r"--embedder .*/v1/embeddings answered 501")
    with ModelServer(script) as server, refused:
        start_helper("embedder", server.base_url, work_dir=tmp_path)


def test_the_embedded_embedder_distinguishes_queries_from_passages_and_is_restarted(tmp_path: Path) -> None:
    """Real vectors through the gateway: unit length, near in meaning, different for a query and for a passage."""
    config = RunConfig.model_validate(
        {"dataset": tmp_path, "backends": ["x"], "readers": [{"spec": "extractive"}], "embedder": {"spec": "embedded"}}
    )
    recorded: list[GatewayCall] = []
    with HelperPool(config, tmp_path, []) as pool, Gateway(pool.upstreams(), recorded.append) as gateway:
        vectors = embed(gateway, ["passage: my dog barks", "a dog", "query: my dog barks", "interest rates"])
        assert all(math.isclose(dot(vector, vector), 1, abs_tol=1e-3) for vector in vectors)
        assert dot(vectors[0], vectors[1]) > dot(vectors[0], vectors[3])
        assert vectors[0] != vectors[2]
        ((role, running),) = pool.items()
        running.stop()
        assert not running.alive()
        gateway.replace_upstream(pool.restart(role).upstream)
        assert embed(gateway, ["passage: my dog barks"])[0] == pytest.approx(vectors[0], abs=1e-5)
    assert [(call.route, call.phase, call.status) for call in recorded] == [("/v1/embeddings", "search", 200)] * 2
    assert recorded[0].prompt_tokens


def embed(gateway: Gateway, texts: list[str]) -> list[list[float]]:
    token = gateway.grant(CallContext("search"))
    status, reply = post(gateway, "/embeddings", {"model": "multilingual-e5-small", "input": texts}, token)
    gateway.revoke(token)
    assert status == 200
    return [row["embedding"] for row in reply["data"]]


def post(gateway: Gateway, route: str, body: object, token: str) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(gateway.base_url + route, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def dot(first: list[float], second: list[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def test_a_reranker_ranks_through_the_gateway_and_no_other_model_does(tmp_path: Path) -> None:
    with ModelServer(model="ranker") as server:
        upstreams = [server.upstream(role="reranker"), server.upstream(name="reader")]
        with Gateway(upstreams, lambda call: None) as gateway:
            token = gateway.grant(CallContext("search"))
            body = {"query": "red apple", "documents": ["a blue sky", "one red apple", "an apple"], "top_n": 2}
            status, ranked = post(gateway, "/rerank", {"model": "ranker", **body}, token)
            refused, _ = post(gateway, "/rerank", {"model": "reader", **body}, token)
            gateway.revoke(token)
    assert status == 200
    assert ranked["results"] == [
        {"index": 1, "relevance_score": 1.0},
        {"index": 2, "relevance_score": 0.5},
    ]
    assert refused == 404


def test_two_models_with_the_same_name_are_refused(tmp_path: Path) -> None:
    with ModelServer(model="same") as server:
        both = HelperConfig(spec=server.base_url)
        reader = ReaderConfig(spec="extractive")
        config = RunConfig(dataset=tmp_path, backends=("x",), readers=(reader,), embedder=both, reranker=both)
        with pytest.raises(RunError, match="a model same is in the run already"), HelperPool(config, tmp_path, []):
            pass


@pytest.mark.parametrize("raw", [b"{}", b"[]", b'{"input": []}', b'{"input": [1]}', b"nonsense"])
def test_a_request_without_texts_is_malformed(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"input|Expecting"):
        texts_of(raw)
