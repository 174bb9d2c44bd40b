"""Tests Vanilla (the latest turns within a budget) and Oracle (the complete evidence sessions)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memarena_backend import tokens_by_bytes
from memarena_backend_vanilla_oracle import OracleMemory, VanillaMemory
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import (
    Served,
    bad_fields,
    code_of,
    connect,
    launch,
    make_day,
    make_query,
    make_session,
    message_of,
    moment,
    serve,
)


@pytest.fixture
def vanilla(tmp_path: Path) -> Iterator[Served]:
    with serve(VanillaMemory(), tmp_path / "vanilla") as served:
        yield served


@pytest.fixture
def oracle(tmp_path: Path) -> Iterator[Served]:
    with serve(OracleMemory(), tmp_path / "oracle") as served:
        yield served


def budget(tokens: int) -> list[pb.Option]:
    return [pb.Option(key="budget_tokens", value=str(tokens))]


def test_each_says_what_it_is(vanilla: Served, oracle: Served) -> None:
    described = [served.stub.Describe(pb.DescribeRequest(), timeout=30) for served in (vanilla, oracle)]
    assert [each.name for each in described] == ["vanilla", "oracle"]
    assert [each.kind for each in described] == [pb.BACKEND_KIND_COMPETITOR, pb.BACKEND_KIND_DIAGNOSTIC]
    assert {each.preferred_prompt_style for each in described} == {pb.PROMPT_STYLE_TEXT_SESSIONS}
    for each in described:
        assert set(each.capabilities) == {pb.CAPABILITY_ANSWER, pb.CAPABILITY_PROVENANCE, pb.CAPABILITY_DURABLE}
    defaults = [{option.key: option.default_value for option in each.options} for each in described]
    framing = {"identity": "relation", "policy": "off"}
    assert defaults[0] == {"budget_tokens": "8192", **framing}
    assert defaults[1] == {"budget_tokens": "0", "distractors": "none", "distractor_seed": "0", **framing}


@pytest.mark.parametrize("variant", ["vanilla", "oracle"])
def test_one_program_serves_both(tmp_path: Path, variant: str) -> None:
    module = "memarena_backend_vanilla_oracle"
    with launch(module, tmp_path, "--variant", variant) as backend, connect(backend.address) as client:
        assert client.stub.Describe(pb.DescribeRequest(), timeout=30).name == variant


# ------------------------------------------------------------------ vanilla


def test_sessions_come_as_blocks_in_the_order_of_time_and_scores_rise(vanilla: Served) -> None:
    vanilla.ingest(make_day("n1", 0, [make_session("s0", ["one", "two"], place="Luna", modality="voice_message")]))
    vanilla.ingest(make_day("n1", 1, [make_session("s1", ["three"], day=1)]))
    items = vanilla.search(make_query("n1", "anything", 1)).items
    assert [item.text for item in items] == [
        "[voice message, at Luna]\nMaya Chen: one\nOmar Haddad: two",
        "Maya Chen: three",
    ]
    assert [[*item.source_session_ids, *item.source_turn_ids] for item in items] == [
        ["s0", "s0.0", "s0.1"],
        ["s1", "s1.0"],
    ]
    assert [item.time for item in items] == [moment(0), moment(1)]
    assert [item.score for item in items] == [0.5, 1.0]


def test_what_was_said_after_the_question_is_not_shown(vanilla: Served) -> None:
    vanilla.ingest(make_day("n1", 0, [make_session("s0", ["one", "two", "three"])]))
    for asked_minute, texts in ((0, ["one"]), (1, ["one", "two"]), (2, ["one", "two", "three"])):
        request = make_query("n1", "x", 0)
        request.asked_at = moment(0, asked_minute)
        (item,) = vanilla.search(request).items
        assert [line.split(": ")[1] for line in item.text.splitlines()] == texts
    request.asked_at = "2025-01-01T08:59:59Z"
    assert list(vanilla.search(request).items) == []
    request.asked_at = "2025-01-01T10:00:30+01:00"
    assert vanilla.search(request).items[0].text == "Maya Chen: one"


def test_sessions_at_the_same_time_are_told_apart(vanilla: Served) -> None:
    first, second = make_session("s1", ["a1", "a2"]), make_session("s2", ["b1", "b2"])
    vanilla.ingest(make_day("n1", 0, [first, second]))
    assert vanilla.find("n1", "x", 0) == ["Maya Chen: a1\nOmar Haddad: a2", "Maya Chen: b1\nOmar Haddad: b2"]


def test_max_items_keeps_the_latest_sessions(vanilla: Served) -> None:
    for day in range(4):
        vanilla.ingest(make_day("n1", day, [make_session(f"s{day}", [f"boat {day}"], day=day)]))
    assert vanilla.find("n1", "x", 3, max_items=2) == ["Maya Chen: boat 2", "Maya Chen: boat 3"]


def test_the_default_budget_is_8192_tokens_and_the_smaller_bound_wins(vanilla: Served) -> None:
    texts = [f"{number:04} " + "word " * 40 for number in range(400)]
    vanilla.ingest(make_day("n1", 0, [make_session("s0", texts)]))

    def tokens(**fields: object) -> int:
        return sum(tokens_by_bytes(text) for text in vanilla.find("n1", "x", 0, **fields))

    a_turn = tokens_by_bytes("Omar Haddad: " + texts[0]) + 1
    assert 8192 - a_turn < tokens() <= 8192
    assert 1000 - a_turn < tokens(options=budget(1000)) <= 1000
    assert 500 - a_turn < tokens(options=budget(1000), max_context_tokens=500) <= 500
    assert 500 - a_turn < tokens(options=budget(500), max_context_tokens=1000) <= 500


def test_a_latest_turn_above_the_budget_is_cut_and_says_so(vanilla: Served) -> None:
    vanilla.ingest(make_day("n1", 0, [make_session("s0", ["first", "word " * 100])]))
    response = vanilla.search(make_query("n1", "x", 0, max_context_tokens=10))
    assert [item.text for item in response.items] == ["Omar Haddad: word word word word word"]
    assert [notice.code for notice in response.notices] == ["item_cut"]


def test_nothing_said_yet_is_no_error(vanilla: Served) -> None:
    vanilla.ingest(make_day("n1", 0, [make_session("s0", [""])]))
    response = vanilla.search(make_query("n1", "x", 0))
    assert (list(response.items), list(response.notices)) == ([], [])


def blocks_of(sessions: list[list[str]], count: int, setting: str) -> list[str]:
    """Blocks of the last ``count`` turns, made the plain way."""
    positions = [(number, turn) for number, texts in enumerate(sessions) for turn, text in enumerate(texts) if text]
    blocks = []
    for number, texts in enumerate(sessions):
        turn_numbers = [turn for session, turn in positions[len(positions) - count :] if session == number]
        lines = [f"{('Maya Chen', 'Omar Haddad')[turn % 2]}: {texts[turn]}" for turn in turn_numbers]
        if lines:
            blocks.append("\n".join([setting, *lines] if setting else lines))
    return blocks


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sessions=st.lists(st.lists(st.text("ab é😀", max_size=20), max_size=5), max_size=5),
    fitting=st.integers(0, 25),
    slack=st.sampled_from([-1, 0, 1]),
    place=st.sampled_from(["", "Luna Café"]),
)
def test_the_shown_turns_are_the_latest_that_fit(
    vanilla: Served, sessions: list[list[str]], fitting: int, slack: int, place: str
) -> None:
    """Law: the longest run of turns up to the question of which every shorter one fits the budget too."""
    vanilla.reset("n1")
    day_sessions = [make_session(f"s{n}", texts, minute=10 * n, place=place) for n, texts in enumerate(sessions)]
    vanilla.ingest(make_day("n1", 0, day_sessions))
    setting = f"[at {place}]" if place else ""
    turns = sum(1 for texts in sessions for text in texts if text)
    # A bound at the very edge: what the last few turns take, one token more or less.
    exact = blocks_of(sessions, min(fitting, turns), setting)
    bound = max(1, sum(tokens_by_bytes(block) for block in exact) + slack)
    expected: list[str] = []
    for count in range(1, turns + 1):
        blocks = blocks_of(sessions, count, setting)
        if sum(tokens_by_bytes(block) for block in blocks) > bound:
            break
        expected = blocks
    response = vanilla.search(make_query("n1", "x", 0, options=budget(bound)))
    if turns and not expected:
        assert [notice.code for notice in response.notices] in (["item_cut"], ["item_left_out"])
    else:
        assert [item.text for item in response.items] == expected


# ------------------------------------------------------------------ oracle


def evidence(*session_ids: str, marker: str = "") -> pb.PrivilegedEvidence:
    return pb.PrivilegedEvidence(session_ids=session_ids, access_marker=marker)


@pytest.fixture
def known(oracle: Served) -> Served:
    first = make_session("s0", ["one", "", "two"], place="Luna", group="Choir", modality="text_message")
    oracle.ingest(make_day("n1", 0, [first, make_session("s1", ["three"], minute=30)]))
    oracle.ingest(make_day("n1", 1, [make_session("s2", ["four " * 30], day=1)]))
    return oracle


def test_evidence_sessions_come_verbatim_in_the_order_given(known: Served) -> None:
    items = known.search(make_query("n1", "x", 1, privileged_evidence=evidence("s1", "s0"))).items
    assert [item.text for item in items] == [
        "Maya Chen: three",
        "[text message, at Luna, with Choir]\nMaya Chen: one\nMaya Chen: two",
    ]
    assert [[*item.source_session_ids, *item.source_turn_ids] for item in items] == [
        ["s1", "s1.0"],
        ["s0", "s0.0", "s0.2"],
    ]
    assert [item.time for item in items] == [moment(0, 30), moment(0)]
    assert items[0].score > items[1].score


def test_no_session_named_is_no_evidence_and_nothing_sent_is_a_mistake(known: Served) -> None:
    assert known.find("n1", "x", 1, privileged_evidence=evidence()) == []
    with pytest.raises(grpc.RpcError) as caught:
        known.search(make_query("n1", "x", 1))
    assert code_of(caught.value) is grpc.StatusCode.INVALID_ARGUMENT
    assert bad_fields(caught.value) == ["privileged_evidence"]


def test_a_session_that_was_not_ingested_is_named(known: Served) -> None:
    known.ingest(make_day("n2", 1, [make_session("s9", ["other"], day=1)]))
    with pytest.raises(grpc.RpcError) as caught:
        known.search(make_query("n1", "x", 1, privileged_evidence=evidence("s0", "s9")))
    assert bad_fields(caught.value) == ["privileged_evidence.session_ids[1]"]
    assert "'s9' was not ingested" in message_of(caught.value)


def test_a_session_named_twice_is_shown_once(known: Served) -> None:
    assert known.find("n1", "x", 1, privileged_evidence=evidence("s1", "s1")) == ["Maya Chen: three"]


def test_an_access_marker_stands_at_the_head_of_every_session(known: Served) -> None:
    texts = known.find("n1", "x", 1, privileged_evidence=evidence("s1", "s0", marker="[access:DENY]"))
    assert [text.splitlines()[0] for text in texts] == ["[access:DENY]"] * 2
    assert known.find("n1", "x", 1, privileged_evidence=evidence("s1")) == ["Maya Chen: three"]


def test_bounds_take_from_the_end(known: Served) -> None:
    all_evidence = evidence("s1", "s2", "s0")
    assert len(known.find("n1", "x", 1, privileged_evidence=all_evidence, max_items=2)) == 2
    assert known.find("n1", "x", 1, privileged_evidence=all_evidence, max_context_tokens=10) == ["Maya Chen: three"]


def test_evidence_is_not_kept(known: Served) -> None:
    known.search(make_query("n1", "x", 1, privileged_evidence=evidence("s1")))
    with pytest.raises(grpc.RpcError):
        known.search(make_query("n1", "x", 1))
