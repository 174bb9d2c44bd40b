"""Tests options of bm25: session passages, headers, names, recency, vectors, fusion, reranking, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_backend import Endpoint, ServeError
from memarena_backend_bm25 import Bm25Memory
from memarena_backend_bm25.ranking import best, fused, with_recency
from memarena_backend_bm25.settings import Settings, read_settings
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import (
    Served,
    bad_fields,
    code_of,
    launch,
    make_day,
    make_query,
    make_session,
    message_of,
    serve,
)
from tests.backends.support import connect as connect_to
from tests.support.model_script import Script
from tests.support.model_server import ModelServer, Received

MODULE = "memarena_backend_bm25"
READER = pb.Model(name="reader", role=pb.MODEL_ROLE_READER)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A server of embeddings and rerank scores: vectors depend on the text alone, scores on shared words."""
    with ModelServer(model="null-model") as running:
        yield running


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Served]:
    with serve(Bm25Memory(), tmp_path / "plain") as served:
        yield served


@pytest.fixture
def dense(tmp_path: Path, model: ModelServer) -> Iterator[Served]:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    with serve(Bm25Memory(data_dir, with_vectors(model)), data_dir) as served:
        yield served


def with_vectors(model: ModelServer) -> Settings:
    endpoint = Endpoint(model.base_url, model.model)
    return Settings(vectors=True, embedding=endpoint, rerank=endpoint)


def options(values: Mapping[str, str]) -> list[pb.Option]:
    return [pb.Option(key=key, value=value) for key, value in sorted(values.items())]


def found(served: Served, question: str, day: int = 0, **values: str) -> list[str]:
    return served.find("n1", question, day, options=options(values))


def notices(served: Served, question: str, **values: str) -> list[str]:
    response = served.search(make_query("n1", question, 0, options=options(values)))
    return [notice.code for notice in response.notices]


def asked(model: ModelServer, route: str) -> list[Received]:
    return [request for request in model.received if request.route == route]


# ------------------------------------------------------------------ passages and headers


def test_a_session_can_be_the_passage(tmp_path: Path) -> None:
    with serve(Bm25Memory(settings=Settings(passage="session")), tmp_path / "data") as served:
        quiet = make_session("s2", ["", ""], minute=30)
        served.ingest(make_day("n1", 0, [make_session("s1", ["Nice boat!", "", "Thanks."], place="Luna"), quiet]))
        (item,) = served.search(make_query("n1", "boat", 0)).items
    assert item.text == "[at Luna]\nMaya Chen: Nice boat!\nMaya Chen: Thanks."
    assert [*item.source_session_ids, *item.source_turn_ids] == ["s1", "s1.0", "s1.2"]
    assert item.time == "2025-01-01T09:00:00+00:00"


def test_a_header_says_where_a_passage_comes_from_and_carries_no_id(plain: Served) -> None:
    plain.ingest(make_day("n1", 0, [make_session("s1", ["sea"])]))
    plain.ingest(make_day("n1", 4, [make_session("s2", ["sky"], day=4), make_session("s3", ["boat"], day=4)]))
    assert found(plain, "boat", 4, headers="on", k="1") == [
        "(conversation 3, day 5, Maya Chen, Sunday 5 January 2025 09:00)\nMaya Chen: boat"
    ]
    assert found(plain, "boat", 4, k="1") == ["Maya Chen: boat"]


# ------------------------------------------------------------------ names


def test_the_entity_filter_keeps_sessions_that_mention_a_name_of_the_question(plain: Served) -> None:
    here = make_session("s1", ["the boat sank"], place="Luna Café")
    spoken = make_session("s2", ["a boat, seen from the luna café"], minute=20)
    other = make_session("s3", ["boat boat boat", "boat"], minute=40)
    for session in (here, spoken, other):
        del session.participants[1:]
        for turn in session.turns:
            turn.speaker_id = "p-own"
    plain.ingest(make_day("n1", 0, [here, spoken, other]))
    assert len(found(plain, "boat at the Luna Café?")) == 4
    texts = found(plain, "boat at the Luna Café?", entities="on")
    assert sorted(texts) == ["Maya Chen: a boat, seen from the luna café", "[at Luna Café] Maya Chen: the boat sank"]
    assert notices(plain, "boat at the Luna Café?", entities="on") == []


def test_a_question_without_a_name_leaves_nothing_out_and_says_so(plain: Served) -> None:
    plain.ingest(make_day("n1", 0, [make_session("s1", ["boat", "sea"])]))
    assert found(plain, "boat", entities="on") == found(plain, "boat")
    assert notices(plain, "boat", entities="on") == ["no_entities"]
    assert notices(plain, "what did Maya Chen say?", entities="on") == ["no_entities"], "everything is about the owner"


# ------------------------------------------------------------------ recency


def test_recency_moves_later_turns_up_and_its_weight_decides_how_far(plain: Served) -> None:
    for day, text in enumerate(["boat boat sea", "boat", "nothing of the kind"]):
        plain.ingest(make_day("n1", day, [make_session(f"s{day}", [text], day=day)]))
    first = "Maya Chen: boat boat sea"
    assert found(plain, "boat sea", 2)[0] == first
    assert found(plain, "boat sea", 2, recency="0.25")[0] == first
    assert found(plain, "boat sea", 2, recency="50")[0] == "Maya Chen: nothing of the kind"
    with pytest.raises(grpc.RpcError, match="recency: expected a number from 0 to 100"):
        found(plain, "boat", 2, recency="much")


@given(
    scores=st.lists(st.floats(-5, 5), min_size=1, max_size=20),
    ages=st.lists(st.floats(-1e6, 1e8), min_size=20, max_size=20),
)
def test_a_prior_of_weight_zero_keeps_the_order_of_scores(scores: list[float], ages: list[float]) -> None:
    """Law; what is said after the question counts as said at it."""
    values = np.round(np.array(scores), 6)
    moved = with_recency(values, np.array(ages[: len(scores)]), 0.0)
    assert best(moved, len(scores)).tolist() == best(values, len(scores)).tolist()
    recent = with_recency(np.zeros(len(scores)), np.array(ages[: len(scores)]), 1.0)
    assert ((recent >= 0) & (recent <= 1)).all()


# ------------------------------------------------------------------ vectors and fusion


def test_dense_retrieval_finds_by_vectors_alone(dense: Served, model: ModelServer) -> None:
    """The server gives equal texts equal vectors, so the passage that is the question comes first, at a cosine of 1."""
    dense.ingest(make_day("n1", 0, [make_session("s1", ["sea", "boat boat", "boat"])]))
    (request,) = asked(model, "/v1/embeddings")
    assert request.body["input"] == ["Maya Chen: sea", "Omar Haddad: boat boat", "Maya Chen: boat"]
    response = dense.search(make_query("n1", "Maya Chen: boat", 0, options=options({"retrieval": "dense"})))
    assert response.items[0].text == "Maya Chen: boat"
    assert response.items[0].score == pytest.approx(1.0, abs=1e-6)
    assert len(asked(model, "/v1/embeddings")) == 2


def test_without_vectors_the_option_is_not_declared_and_words_need_no_model(plain: Served, dense: Served) -> None:
    def declared(served: Served) -> set[str]:
        return {option.key for option in served.stub.Describe(pb.DescribeRequest(), timeout=30).options}

    assert declared(dense) - declared(plain) == {"retrieval"}
    plain.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
    with pytest.raises(grpc.RpcError) as caught:
        found(plain, "boat", retrieval="dense")
    assert code_of(caught.value) is grpc.StatusCode.INVALID_ARGUMENT


def test_both_rankings_are_joined_by_reciprocal_rank(dense: Served) -> None:
    """First by one and second by the other beats first by one alone."""
    dense.ingest(make_day("n1", 0, [make_session("s1", ["boat", "boat sea", "sky", "lamp"])]))
    question = "Omar Haddad: boat sea"
    joined = found(dense, question, retrieval="rrf")
    assert joined[0] == question
    assert sorted(joined) == sorted(found(dense, question))


@given(
    first=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    depth=st.integers(1, 15),
    data=st.data(),
)
def test_fusion_of_a_ranking_with_itself_keeps_its_best(first: list[int], depth: int, data: st.DataObject) -> None:
    """Laws: the same order within the depth, nothing beyond it, and the sides may be swapped."""
    scores = np.array(first, dtype=np.float64)
    twice = fused([scores, scores], depth)
    within = best(scores, min(depth, len(first)))
    assert best(twice, len(within)).tolist() == within.tolist()
    assert np.count_nonzero(twice) == len(within)
    numbers = st.lists(st.integers(0, 9), min_size=len(first), max_size=len(first))
    other = np.array(data.draw(numbers), dtype=np.float64)
    assert fused([scores, other], depth) == pytest.approx(fused([other, scores], depth))


def test_vectors_outlive_the_process_and_go_with_the_namespace(tmp_path: Path, model: ModelServer) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    question = "Maya Chen: boat"
    with serve(Bm25Memory(data_dir, with_vectors(model)), data_dir) as served:
        served.ingest(make_day("n1", 0, [make_session("s1", ["boat", "sea"])]))
        before = found(served, question, retrieval="dense")
    calls = len(asked(model, "/v1/embeddings"))
    with serve(Bm25Memory(data_dir, with_vectors(model)), data_dir) as served:
        assert found(served, question, retrieval="dense") == before
        assert len(asked(model, "/v1/embeddings")) == calls + 1, "the question; nothing was embedded again"
        served.reset("n1")
    assert b"n1" not in (data_dir / "vectors.sqlite").read_bytes()


def test_an_embedder_that_fails_fails_the_day_and_a_replay_settles_it(dense: Served, model: ModelServer) -> None:
    model.script = Script(status=500, message="out of memory")
    day = make_day("n1", 0, [make_session("s1", ["boat"])])
    with pytest.raises(grpc.RpcError) as caught:
        dense.ingest(day)
    assert code_of(caught.value) is grpc.StatusCode.UNAVAILABLE
    assert "out of memory" in message_of(caught.value)
    model.script = Script()
    assert not dense.ingest(day).replayed
    assert found(dense, "boat", retrieval="dense") == ["Maya Chen: boat"]


@pytest.mark.parametrize("values", [{"retrieval": "dense"}, {"retrieval": "rrf"}, {"rerank": "on"}])
def test_a_model_that_fails_in_a_search_never_becomes_plain_bm25(
    dense: Served, model: ModelServer, values: dict[str, str]
) -> None:
    dense.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
    model.script = Script(status=503, message="loading")
    with pytest.raises(grpc.RpcError) as caught:
        found(dense, "boat", 0, **values)
    assert code_of(caught.value) is grpc.StatusCode.UNAVAILABLE
    assert "null-model failed" in message_of(caught.value)
    assert found(dense, "boat") == ["Maya Chen: boat"]


@pytest.mark.parametrize("values", [{"rerank": "on"}, {"retrieval": "dense", "rerank": "on"}])
def test_a_model_that_nobody_offers_is_said(tmp_path: Path, model: ModelServer, values: dict[str, str]) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    settings = Settings(vectors="retrieval" in values, embedding=Endpoint(model.base_url, model.model))
    with serve(Bm25Memory(data_dir, settings), data_dir) as served:
        served.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
        with pytest.raises(grpc.RpcError, match="BM25_RERANK_URL is not set") as caught:
            found(served, "boat", 0, **values)
        assert bad_fields(caught.value) == ["model_access"]
        access = pb.ModelAccess(base_url="http://127.0.0.1:1/v1", token="t", models=[READER])
        with pytest.raises(grpc.RpcError, match="BM25_RERANK_URL is not set") as caught:
            served.search(make_query("n1", "boat", 0, options=options(values), model_access=access))
    assert code_of(caught.value) is grpc.StatusCode.FAILED_PRECONDITION


def test_vectors_without_an_embedder_are_refused_with_the_first_day(tmp_path: Path) -> None:
    with serve(Bm25Memory(tmp_path, Settings(vectors=True)), tmp_path) as served:
        with pytest.raises(grpc.RpcError, match="BM25_EMBEDDING_URL is not set") as caught:
            served.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
        assert bad_fields(caught.value) == ["header.model_access"]
        served.ingest(make_day("n2", 0))


def test_a_namespace_belongs_to_the_model_that_embedded_it(tmp_path: Path, model: ModelServer) -> None:
    def settings(name: str) -> Settings:
        return Settings(vectors=True, embedding=Endpoint(model.base_url, name))

    with serve(Bm25Memory(tmp_path, settings("one")), tmp_path) as served:
        served.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
    with serve(Bm25Memory(tmp_path, settings("two")), tmp_path) as served:
        with pytest.raises(grpc.RpcError, match="embedded with one, this call offers two"):
            found(served, "boat", retrieval="dense")
        with pytest.raises(grpc.RpcError, match="embedded with one, this call offers two"):
            served.ingest(make_day("n1", 1, [make_session("s2", ["sea"], day=1)]))


# ------------------------------------------------------------------ reranking


def test_a_reranker_sees_the_best_and_its_order_wins(dense: Served, model: ModelServer) -> None:
    texts = ["boat", "boat on the lake", "boat boat boat", "a lake"]
    dense.ingest(make_day("n1", 0, [make_session("s1", texts)]))
    question = "boat on the lake"
    by_words = found(dense, question)
    reranked = dense.search(make_query("n1", question, 0, options=options({"rerank": "on", "depth": "3", "k": "2"})))
    (request,) = asked(model, "/v1/rerank")
    assert request.body["documents"] == by_words[:3]
    assert request.body["query"] == question
    assert [item.score for item in reranked.items] == [1.0, 0.25]
    assert reranked.items[0].text == "Omar Haddad: boat on the lake"


def test_depth_is_never_less_than_k(dense: Served, model: ModelServer) -> None:
    dense.ingest(make_day("n1", 0, [make_session("s1", ["boat"] * 8)]))
    assert len(found(dense, "boat", rerank="on", depth="2", k="5")) == 5
    assert len(asked(model, "/v1/rerank")[0].body["documents"]) == 5


def test_nothing_to_rank_needs_no_model(dense: Served, model: ModelServer) -> None:
    dense.ingest(make_day("n1", 0))
    assert found(dense, "boat", rerank="on", retrieval="rrf") == []
    assert model.received == []


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"BM25_PASSAGE": "page"}, "BM25_PASSAGE: expected turn or session, got 'page'"),
        ({"BM25_VECTORS": "yes"}, "BM25_VECTORS: expected off or on, got 'yes'"),
        ({"BM25_EMBEDDING_PREFIXES": "1"}, "BM25_EMBEDDING_PREFIXES: expected on or off, got '1'"),
        ({"BM25_EMBEDDING_URL": "http://x/v1"}, "BM25_EMBEDDING_URL and BM25_EMBEDDING_MODEL go together"),
        ({"BM25_RERANK_URL": "x", "BM25_RERANK_MODEL": "m"}, "BM25_RERANK_URL: expected an http"),
    ],
)
def test_a_wrong_variable_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ServeError) as caught:
        read_settings(environment)
    assert str(caught.value).startswith(message)


def test_the_environment_decides_and_a_key_is_not_printed() -> None:
    settings = read_settings(
        {
            "BM25_PASSAGE": "session",
            "BM25_VECTORS": "on",
            "BM25_EMBEDDING_URL": "http://e/v1",
            "BM25_EMBEDDING_MODEL": "bge-m3",
            "BM25_EMBEDDING_API_KEY": "sk-secret",
            "BM25_EMBEDDING_PREFIXES": "off",
        }
    )
    assert settings == Settings("session", True, Endpoint("http://e/v1", "bge-m3", "sk-secret"), False)
    assert "sk-secret" not in repr(settings)
    assert read_settings({}) == Settings()


def test_a_served_process_takes_its_settings_from_the_environment(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And asks e5 with the words that its card wants in front of a text, its key in the header."""
    monkeypatch.setenv("BM25_VECTORS", "on")
    monkeypatch.setenv("BM25_EMBEDDING_URL", model.base_url)
    monkeypatch.setenv("BM25_EMBEDDING_MODEL", "multilingual-e5-small")
    monkeypatch.setenv("BM25_EMBEDDING_API_KEY", "sk-mine")
    with launch(MODULE, tmp_path) as process, connect_to(process.address) as served:
        served.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
        found(served, "boat", retrieval="dense")
    passage, query = asked(model, "/v1/embeddings")
    assert passage.body["input"] == ["passage: Maya Chen: boat"]
    assert query.body["input"] == ["query: boat"]
    assert passage.headers["Authorization"] == "Bearer sk-mine"
