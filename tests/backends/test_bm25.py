"""Tests bm25: scores and ranking equal those of rank-bm25 on any corpus; passages; behaviour over gRPC."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_backend import Capability, PromptStyle
from memarena_backend_bm25 import Bm25Memory
from memarena_backend_bm25.okapi import OkapiCorpus
from memarena_backend_bm25.passages import tokenize
from memarena_backend_bm25.ranking import best
from memarena_backend_bm25.reference import ReferenceIndex
from memarena_proto import memory_backend_pb2 as pb
from rank_bm25 import BM25Okapi

from tests.backends.support import (
    Served,
    bad_fields,
    code_of,
    make_day,
    make_query,
    make_session,
    message_of,
    serve,
)

# Few words, so that terms in most documents (negative idf), ties and repeated terms are common.
WORDS = st.sampled_from(["the", "boat", "sea", "sky", "a", "x_1", "7"])
DOCUMENTS = st.lists(st.lists(WORDS, max_size=12), min_size=1, max_size=25)
QUERIES = st.lists(st.one_of(WORDS, st.just("unknown")), max_size=8)


def split_at(documents: Sequence[list[str]], cuts: Sequence[int]) -> list[Sequence[list[str]]]:
    edges = [0, *sorted(cut % (len(documents) + 1) for cut in cuts), len(documents)]
    return [documents[a:b] for a, b in itertools.pairwise(edges)]


@settings(max_examples=400, deadline=None)
@given(
    documents=DOCUMENTS,
    queries=st.lists(QUERIES, min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 99), max_size=3),
)
def test_scores_and_order_are_those_of_the_package(
    documents: list[list[str]], queries: list[list[str]], cuts: list[int]
) -> None:
    """Law: within 1e-9 and in the same order, also when the documents came over several days."""
    corpus = OkapiCorpus()
    for part in split_at(documents, cuts):
        corpus.add(part)
        corpus.index()
    fast, reference = corpus.index(), ReferenceIndex(documents)
    for query in queries:
        ours, theirs = fast.scores(query), reference.scores(query)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
        for count in (1, 3, len(documents), len(documents) + 5):
            assert best(ours, count).tolist() == best(theirs, count).tolist()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_scores_are_the_same_to_the_last_bit_on_a_corpus_of_natural_shape(seed: int) -> None:
    """Law: a ranking cannot differ by rounding, since nothing is rounded differently."""
    rng = np.random.default_rng(seed)
    documents = [[f"w{n}" for n in rng.zipf(1.3, size=int(rng.integers(0, 60))) if n < 5000] for _ in range(150)]
    documents.append(["w1", "w2"])
    corpus = OkapiCorpus()
    corpus.add(documents)
    fast, package = corpus.index(), BM25Okapi(documents)
    for _ in range(5):
        query = [f"w{n}" for n in rng.zipf(1.3, size=9)]
        assert np.array_equal(fast.scores(query), package.get_scores(query))


def test_the_reference_engine_is_the_package_itself() -> None:
    documents = [["a", "b"], ["b", "c", "c"], ["d"]]
    assert np.array_equal(ReferenceIndex(documents).scores(["b", "c"]), BM25Okapi(documents).get_scores(["b", "c"]))


@pytest.mark.parametrize(
    "documents",
    [[], [[]], [[], []], [["a"]], [["a"], ["a"]], [["a"], []], [["a", "b"]] * 9],
    ids=["empty", "no words", "two of no words", "one", "in all", "one of none", "nine alike"],
)
def test_corpora_at_the_edge_are_no_error(documents: list[list[str]]) -> None:
    corpus = OkapiCorpus()
    corpus.add(documents)
    fast, reference = corpus.index(), ReferenceIndex(documents)
    for query in ([], ["a"], ["a", "a"], ["unknown"]):
        ours = fast.scores(query)
        assert ours.shape == (len(documents),)
        assert np.array_equal(ours, reference.scores(query))
        assert best(ours, 3).tolist() == list(range(min(3, len(documents)))) or documents == [["a"], []]


def test_the_corpus_of_the_edge_cases_has_negative_scores() -> None:
    """The positive control of the laws above: negative idf does occur and is kept."""
    corpus = OkapiCorpus()
    corpus.add([["a"], ["a"]])
    assert (corpus.index().scores(["a"]) < 0).all()


@given(scores=st.lists(st.sampled_from([-1.0, -0.0, 0.0, 0.5, 2.0]), max_size=30), count=st.integers(0, 35))
def test_the_ranking_is_a_stable_sort(scores: list[float], count: int) -> None:
    """Law: score descending, then the order of turns; the same as sorting everything."""
    expected = sorted(range(len(scores)), key=lambda number: (-scores[number], number))[:count]
    assert best(np.array(scores), count).tolist() == expected


def test_tokens_are_words_in_lower_case_those_of_ascii_apart() -> None:
    assert tokenize("The Boat-house, at 7:30 on_time!") == ["the", "boat", "house", "at", "7", "30", "on_time"]
    assert tokenize("naïve ZÜrich") == ["na", "ï", "ve", "z", "ü", "rich"]
    assert tokenize("你好 שלום, Ж_1 👩‍👩‍👧") == ["你好", "שלום", "ж", "_1"]


# ------------------------------------------------------------------ over gRPC


@pytest.fixture
def bm25(tmp_path: Path) -> Iterator[Served]:
    with serve(Bm25Memory(), tmp_path / "bm25") as served:
        yield served


def options(**values: str) -> list[pb.Option]:
    return [pb.Option(key=key, value=value) for key, value in sorted(values.items())]


def test_it_says_what_it_is(bm25: Served) -> None:
    described = bm25.stub.Describe(pb.DescribeRequest(), timeout=30)
    assert described.name == "bm25"
    assert described.kind == pb.BACKEND_KIND_COMPETITOR
    assert set(described.capabilities) == {
        pb.CAPABILITY_ANSWER,
        pb.CAPABILITY_PROVENANCE,
        pb.CAPABILITY_DURABLE,
        pb.CAPABILITY_FORGET,
    }
    assert described.preferred_prompt_style == pb.PROMPT_STYLE_JSON_CONTEXT
    assert {option.key: option.default_value for option in described.options} == {
        "depth": "20",
        "engine": "fast",
        "entities": "off",
        "headers": "off",
        "k": "10",
        "recency": "0",
        "rerank": "off",
    }
    assert Bm25Memory().describe().prompt_style is PromptStyle.JSON_CONTEXT
    assert Capability.TIME_TRAVEL not in Bm25Memory().describe().capabilities


def test_a_passage_has_its_setting_its_speaker_and_its_time(bm25: Served) -> None:
    session = make_session(
        "s1", ["Nice boat!", "Thanks."], place="Luna Café", group="Book club", modality="face_to_face"
    )
    bm25.ingest(make_day("n1", 0, [session]))
    (best_item, _) = bm25.search(make_query("n1", "boat", 0)).items
    assert best_item.text == "[face to face, at Luna Café, with Book club] Maya Chen: Nice boat!"
    assert best_item.time == "2025-01-01T09:00:00+00:00"
    assert [*best_item.source_session_ids, *best_item.source_turn_ids] == ["s1", "s1.0"]


@pytest.mark.parametrize("question", ["Luna", "book club", "face", "Maya", "Wednesday", "January", "1", "2025"])
def test_setting_speaker_and_date_can_be_searched_for(bm25: Served, question: str) -> None:
    here = make_session("s1", ["yes"], place="Luna", group="Book club", modality="face_to_face")
    there = make_session("s2", ["yes", "no"], day=33, place="Sol", group="Choir", modality="text_message")
    for turn in there.turns:
        turn.speaker_id = "p-fri"
    other_year = [turn.said_at.replace("2025-02-03", "2026-02-03") for turn in there.turns]
    for turn, said_at in zip(there.turns, other_year, strict=True):
        turn.said_at = said_at
    bm25.ingest(make_day("n1", 0, [here]))
    bm25.ingest(make_day("n1", 33, [there]))
    assert bm25.search(make_query("n1", question, 33)).items[0].source_session_ids == ["s1"]


def test_a_day_without_words_is_no_error_and_finds_nothing(bm25: Served) -> None:
    bm25.ingest(make_day("n1", 0))
    for engine in ("fast", "reference"):
        assert bm25.find("n1", "boat", 0, options=options(engine=engine)) == []
    bm25.ingest(make_day("n1", 1, [make_session("s1", ["", ""], day=1)]))
    assert bm25.find("n1", "boat", 1) == [], "a turn in which nothing was said is no passage"
    bm25.ingest(make_day("n1", 2, [make_session("s2", ["boat"], day=2)]))
    assert bm25.find("n1", "boat", 2) == ["Maya Chen: boat"]


def test_text_without_a_single_token_is_kept_and_fills_the_ranking(bm25: Served) -> None:
    bm25.ingest(make_day("n1", 0, [make_session("s1", ["…", "boat", "שלום"])]))
    assert bm25.find("n1", "boat", 0) == ["Omar Haddad: boat", "Maya Chen: …", "Maya Chen: שלום"]
    assert bm25.find("n1", "שלום", 0) == ["Maya Chen: שלום", "Maya Chen: …", "Omar Haddad: boat"]


def test_k_max_items_and_max_context_tokens_bound_the_items_from_the_low_end(bm25: Served) -> None:
    texts = [f"boat {'sea ' * number}" for number in range(30)]
    bm25.ingest(make_day("n1", 0, [make_session("s1", texts)]))
    whole = bm25.find("n1", "boat", 0, options=options(k="30"))
    assert len(whole) == 30
    assert bm25.find("n1", "boat", 0) == whole[:10]
    assert bm25.find("n1", "boat", 0, options=options(k="3")) == whole[:3]
    assert bm25.find("n1", "boat", 0, options=options(k="3"), max_items=2) == whole[:2]
    assert bm25.find("n1", "boat", 0, max_items=20) == whole[:10]
    tokens = [-(-len(text.encode()) // 4) for text in whole]
    for bound in range(1, sum(tokens[:10]) + 2):
        response = bm25.search(make_query("n1", "boat", 0, max_context_tokens=bound))
        item_texts = [item.text for item in response.items]
        if item_texts and len(item_texts) == 1 and item_texts != whole[:1]:
            assert whole[0].startswith(item_texts[0])
            assert [notice.code for notice in response.notices] == ["item_cut"]
        else:
            assert item_texts == whole[: len(item_texts)]
            assert sum(tokens[: len(item_texts)]) <= bound
            assert len(item_texts) == 10 or sum(tokens[: len(item_texts) + 1]) > bound


@pytest.mark.parametrize("values", [{"k": "0"}, {"k": "-1"}, {"k": "many"}, {"engine": "slow"}, {"b": "0.5"}])
def test_option_values_are_checked(bm25: Served, values: dict[str, str]) -> None:
    bm25.ingest(make_day("n1", 0))
    with pytest.raises(grpc.RpcError) as caught:
        bm25.search(make_query("n1", "boat", 0, options=options(**values)))
    assert code_of(caught.value) is grpc.StatusCode.INVALID_ARGUMENT
    assert bad_fields(caught.value)[0].startswith("options")


def test_without_the_package_the_reference_engine_says_what_to_install(
    bm25: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    bm25.ingest(make_day("n1", 0, [make_session("s1", ["boat"])]))
    monkeypatch.setitem(sys.modules, "rank_bm25", None)
    with pytest.raises(grpc.RpcError) as caught:
        bm25.search(make_query("n1", "boat", 0, options=options(engine="reference")))
    assert code_of(caught.value) is grpc.StatusCode.INVALID_ARGUMENT
    assert "memarena-backend-bm25[reference]" in message_of(caught.value)
    assert bm25.find("n1", "boat", 0) == ["Maya Chen: boat"]


def test_both_engines_return_the_same_response_and_so_does_a_restarted_backend(tmp_path: Path) -> None:
    words = [
        "a",
        "the",
        "boat",
        "sea",
        "storm",
        "harbour",
        "lunch",
        "plan",
        "monday",
        "train",
        "piano",
        "garden",
        "blue",
        "who",
        "when",
    ]
    rng = random.Random(7)
    questions = [" ".join(rng.choices(words, k=rng.randint(1, 7))) for _ in range(20)]

    def ask(served: Served, engine: str, day: int) -> list[pb.SearchResponse]:
        chosen = options(engine=engine)
        responses = [served.search(make_query("n1", question, day, options=chosen)) for question in questions]
        for response in responses:
            response.search_time_us = 0
        return responses

    with serve(Bm25Memory(), tmp_path) as served:
        for day in range(10):
            texts = [" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(12)]
            served.ingest(make_day("n1", day, [make_session(f"s{day}", texts, day=day)]))
            assert ask(served, "reference", day) == ask(served, "fast", day)
        last = ask(served, "fast", 9)
    assert all(len(response.items) == 10 for response in last)
    with serve(Bm25Memory(), tmp_path) as served:
        assert ask(served, "fast", 9) == last
        assert ask(served, "reference", 9) == last


def test_namespaces_do_not_change_each_others_scores(bm25: Served) -> None:
    session = make_session("s1", ["boat sea", "boat", "sky", "sea sea"])
    bm25.ingest(make_day("n1", 0, [session]))
    before = bm25.search(make_query("n1", "boat sea", 0)).items
    bm25.ingest(make_day("n2", 0, [make_session("s2", ["boat"] * 50)]))
    assert list(bm25.search(make_query("n1", "boat sea", 0)).items) == list(before)
    bm25.reset("n2")
    assert list(bm25.search(make_query("n1", "boat sea", 0)).items) == list(before)
