"""Tests Oracle's controls: distractors next to the evidence, the asker in the prompt, rules for sharing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.gateway import CallContext, Gateway
from memarena_answering import control_text
from memarena_backend import Item, tokens_by_bytes
from memarena_backend_vanilla_oracle import OmniscientMemory, OracleMemory
from memarena_backend_vanilla_oracle.distractors import draw, recent
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import Served, bad_fields, make_day, make_query, make_session, moment, serve
from tests.support.model_server import ModelServer

DAYS = 8


@pytest.fixture
def oracle(tmp_path: Path) -> Iterator[Served]:
    """A life of one session a day, of eight tokens each."""
    with serve(OracleMemory(), tmp_path / "oracle") as served:
        for day in range(DAYS):
            served.ingest(make_day("n1", day, [make_session(f"s{day}", [f"the story of day {day}"], day=day)]))
        yield served


def asked(evidence: list[str], **options: str) -> pb.SearchRequest:
    return make_query(
        "n1",
        "story?",
        DAYS - 1,
        privileged_evidence=pb.PrivilegedEvidence(session_ids=evidence, access_marker="[note]"),
        options=[pb.Option(key=key, value=value) for key, value in sorted(options.items())],
    )


def shown(served: Served, request: pb.SearchRequest) -> list[str]:
    return [item.source_session_ids[0] for item in served.search(request).items]


SIZE = tokens_by_bytes("Maya Chen: the story of day 0")
MARKED = tokens_by_bytes("[note]\nMaya Chen: the story of day 0")


def test_recent_distractors_fill_the_budget_in_the_order_of_time(oracle: Served) -> None:
    budget = str(MARKED + 2 * SIZE)
    assert shown(oracle, asked(["s1"], distractors="recent", budget_tokens=budget)) == ["s1", "s6", "s7"]
    assert shown(oracle, asked(["s1"], distractors="recent", budget_tokens=str(MARKED))) == ["s1"]
    assert shown(oracle, asked([], distractors="recent", budget_tokens=str(SIZE))) == ["s7"]
    assert shown(oracle, asked(["s1"], distractors="recent")) == [f"s{day}" for day in range(DAYS)]


def test_a_reader_with_less_room_loses_distractors_first_and_markers_stand_on_evidence(oracle: Served) -> None:
    items = oracle.search(asked(["s2", "s5"], distractors="recent")).items
    by_score = sorted(items, key=lambda item: -item.score)
    assert [item.source_session_ids[0] for item in by_score] == ["s2", "s5", "s7", "s6", "s4", "s3", "s1", "s0"]
    assert [item.source_session_ids[0] for item in items if item.text.startswith("[note]\n")] == ["s2", "s5"]


def test_random_distractors_are_as_many_and_follow_from_seed_and_question(oracle: Served) -> None:
    budget = str(MARKED + 3 * SIZE)

    def drawn_with(seed: str) -> list[str]:
        return shown(oracle, asked(["s1"], distractors="random", distractor_seed=seed, budget_tokens=budget))

    draws = {seed: drawn_with(seed) for seed in ("0", "1", "2", "3")}
    assert all(
        len(session_ids) == 4 and "s1" in session_ids and session_ids == sorted(session_ids)
        for session_ids in draws.values()
    )
    assert drawn_with("0") == draws["0"]
    assert len({tuple(session_ids) for session_ids in draws.values()}) > 1


def test_distractors_obey_the_calls_own_bounds(oracle: Served) -> None:
    request = asked(["s1"], distractors="recent")
    request.max_items = 2
    assert shown(oracle, request) == ["s1", "s7"]
    request.max_items = 0
    request.max_context_tokens = MARKED + SIZE
    assert shown(oracle, request) == ["s1", "s7"]
    request.asked_at = moment(6, 30)
    assert shown(oracle, request) == ["s1", "s6"], "what was said after the question is no distractor"


def test_a_budget_bounds_the_evidence_too(oracle: Served) -> None:
    assert shown(oracle, asked(["s1", "s2"], budget_tokens=str(MARKED))) == ["s1"]
    assert shown(oracle, asked(["s1", "s2"])) == ["s1", "s2"]


@pytest.mark.parametrize(
    "values", [{"distractors": "some"}, {"budget_tokens": "-1"}, {"distractors": "random", "distractor_seed": "x"}]
)
def test_a_value_without_a_meaning_is_refused(oracle: Served, values: dict[str, str]) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        oracle.search(asked(["s1"], **values))
    assert bad_fields(caught.value) == ["options"]


LENGTHS = st.lists(st.integers(1, 60), max_size=15)


@given(lengths=LENGTHS, room=st.integers(0, 200), seed=st.integers(0, 5), question=st.text(max_size=5))
def test_chosen_distractors_always_fit(lengths: list[int], room: int, seed: int, question: str) -> None:
    """Laws: within the room, none twice, random ones at most as many as recent ones."""
    candidates = [Item("x" * length, 0.0) for length in lengths]
    latest = recent(candidates, room)
    picked = draw(candidates, room, len(latest), seed, question)
    for chosen in (latest, picked):
        assert sum(tokens_by_bytes(candidates[position].text) for position in chosen) <= room
        assert len(set(chosen)) == len(chosen)
    assert latest == sorted(latest, reverse=True)
    assert len(picked) <= len(latest)
    assert len(picked) == len(latest) or not latest or len(set(lengths)) > 1


# ------------------------------------------------------------------ what the reader is told


@pytest.mark.parametrize(
    ("identity", "line"),
    [("relation", "Asked by: Omar Haddad, brother of the owner\n"), ("name", "Asked by: Omar Haddad\n"), ("none", "")],
)
@pytest.mark.parametrize("policy", ["off", "on"])
def test_identity_and_policy_change_the_prompt_and_nothing_that_is_found(
    oracle: Served, identity: str, line: str, policy: str
) -> None:
    request = asked(["s1"], identity=identity, policy=policy)
    request.requester.CopyFrom(
        pb.Requester(
            kind=pb.REQUESTER_KIND_KNOWN_PERSON,
            participant_id="p-fri",
            display_name="Omar Haddad",
            relationship="brother",
        )
    )
    system, user = prompt_of(oracle, request)
    header = control_text().policy_header
    assert system.startswith(header) == (policy == "on")
    assert (line in user) if line else ("Asked by" not in user and "Omar" not in user)
    assert shown(oracle, request) == ["s1"]


def test_an_identity_without_a_meaning_fails_the_answer(oracle: Served) -> None:
    with pytest.raises(grpc.RpcError, match="identity: expected one of relation, name, none"):
        prompt_of(oracle, asked(["s1"], identity="full"))


def prompt_of(served: Served, request: pb.SearchRequest) -> tuple[str, str]:
    """System and user text that reach the reader."""
    with ModelServer() as reader, Gateway([reader.upstream(name="tiny")], lambda _: None) as gateway:
        access = pb.ModelAccess(
            base_url=gateway.base_url,
            token=gateway.grant(CallContext("answer")),
            models=[pb.Model(name="tiny", role=pb.MODEL_ROLE_READER, context_window_tokens=4096)],
        )
        search = pb.SearchRequest()
        search.CopyFrom(request)
        search.model_access.CopyFrom(access)
        answer = pb.AnswerRequest(search=search, reading=pb.Reading(model="tiny", max_tokens=8))
        list(served.stub.Answer(answer, timeout=20))
        messages = reader.received[-1].body["messages"]
    assert isinstance(messages, list)
    system, user = (str(message["content"]) for message in messages if isinstance(message, dict))
    return system, user


def test_omniscient_is_vanilla_as_a_diagnostic(tmp_path: Path) -> None:
    with serve(OmniscientMemory(), tmp_path / "all") as served:
        described = served.stub.Describe(pb.DescribeRequest(), timeout=30)
        served.ingest(make_day("n1", 0, [make_session("s0", ["one"])]))
        assert served.find("n1", "x", 0) == ["Maya Chen: one"]
    assert (described.name, described.kind) == ("omniscient", pb.BACKEND_KIND_DIAGNOSTIC)
