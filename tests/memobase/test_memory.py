"""Tests Memobase over gRPC: speakers, extraction results, sources of items, limits."""

from __future__ import annotations

from dataclasses import replace

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_backend import Item, tokens_by_bytes
from memarena_backend_memobase import MemobaseMemory
from memarena_backend_memobase.journal import user_of
from memarena_backend_memobase.retrieving import fit_together
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import Served, bad_fields, code_of, make_query, make_session, message_of, serve
from tests.memobase.conftest import Stack, day_of, question, texts_of, told
from tests.memobase.double import ApiError
from tests.memobase.scripted_models import by, reply_of


def notices(response: pb.IngestResponse) -> dict[str, int]:
    return {notice.code: notice.count for notice in response.notices}


def test_the_owner_is_the_user_and_everybody_else_an_assistant_with_a_name(stack: Stack, served: Served) -> None:
    session = make_session("s", ["Hello there.", "Hi Maya."], place="Luna Café", modality="face_to_face")
    served.ingest(day_of("n", 0, session))
    conversation = stack.models.prompts[0]
    assert "[2025-01-01 09:00+00:00] Maya Chen(user): [face to face, at Luna Café] Hello there." in conversation
    assert "[2025-01-01 09:01+00:00] Omar Haddad(assistant): Hi Maya." in conversation


def test_items_name_the_sessions_that_they_come_from(served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex."), told("s2", "My boat is Aurora.")))
    served.ingest(day_of("n", 1, told("s3", "My dog is called Luna.", day=1)))
    items = served.search(question("What is my dog called?", 1)).items
    sessions_by_text = {item.text: list(item.source_session_ids) for item in items}
    assert sessions_by_text["life::dog: Luna"] == ["s1", "s3"]  # first said in one, changed by the other
    assert sessions_by_text["life::boat: Aurora"] == ["s2"]
    lines = {text: sessions for text, sessions in sessions_by_text.items() if text.startswith("Maya Chen: My dog")}
    assert sorted(lines.values()) == [["s1"], ["s3"]]
    times = {item.text: item.time for item in items}
    assert times["life::dog: Luna"] == "2025-01-02T09:00:00+00:00"


def test_a_line_that_two_sessions_gave_is_attributed_to_both(served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex."), told("s2", "My dog is called Rex.")))
    events = list(served.search(question("dog Rex", 0, profile_share="0", similarity="-1")).items)
    assert [list(item.source_session_ids) for item in events] == [["s1", "s2"], ["s1", "s2"]]


def test_days_that_are_extracted_together_have_no_provenance_and_say_so(stack: Stack) -> None:
    memory = MemobaseMemory(stack.data_dir, replace(stack.settings, flush="day"))
    with serve(memory, stack.data_dir) as served:
        declared = served.stub.Describe(pb.DescribeRequest()).capabilities
        assert pb.CAPABILITY_PROVENANCE not in declared
        served.ingest(day_of("n", 0, told("s1", "My dog is called Rex."), told("s2", "My boat is Aurora.")))
        assert sum("### Input Chats" in prompt for prompt in stack.models.prompts) == 1
        items = served.search(question("boat", 0, similarity="-1")).items
    assert len(items) == 4
    assert all(not item.source_session_ids for item in items)


# ------------------------------------------------------------------ what extraction came to


def test_an_extraction_that_yields_nothing_is_reported_with_its_share(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "memarena_backend_memobase")
    first = served.ingest(day_of("n", 0, told("s1", "My dog is called Rex."), told("s2", "…"), told("s3", "!")))
    assert notices(first) == {"sessions_given": 3, "extraction_empty": 2, "memories_stored": 2}
    second = served.ingest(day_of("n", 1, told("s4", "…", day=1)))
    assert [notice.message for notice in second.notices] == [
        "so far 3 empty and 0 failed of 4",
        "1 of 1 sessions gave neither an event nor a profile entry",
    ]
    assert "day 0: 3 sessions given, 2 empty (67%), 0 failed" in caplog.text


def test_a_log_in_prose_and_facts_in_prose_are_reported(stack: Stack, served: Served) -> None:
    """The server calls both a success; of the one no line can be found, of the other no entry is made."""
    stack.models.script = by(
        lambda system, user: "Once upon a time." if "### Input Chats" in user else "None that I know."
    )
    first = served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    assert notices(first) == {
        "sessions_given": 1,
        "log_without_lines": 1,
        "profile_unchanged": 1,
        "memories_stored": 1,
    }
    stack.models.script = by(lambda system, user: reply_of(system, user) if "### Input Chats" in user else "None.")
    second = served.ingest(day_of("n", 1, told("s2", "My dog is called Rex.", day=1)))
    assert notices(second) == {"sessions_given": 1, "profile_unchanged": 1, "memories_stored": 1}
    (line,) = served.search(question("dog", 1, similarity="-1")).items
    assert list(line.source_session_ids) == ["s2"]
    whole = served.search(question("dog", 1, similarity="-1", events="event")).items
    assert {item.text for item in whole} == {"Once upon a time.", f"- {line.text}"}


def test_a_session_that_the_model_refuses_is_lost_by_name_and_the_others_are_kept(stack: Stack, served: Served) -> None:
    def refuse() -> None:
        conversation = next(iter(stack.double.users.values())).blobs[-1].data["messages"][0]["content"]
        stack.models.chat_status = 400 if "too long" in conversation else 200

    stack.double.before_flush = refuse
    days = day_of("n", 0, told("s1", "My dog is called Rex."), told("s2", "too long"), told("s3", "My boat is Aurora."))
    response = served.ingest(days)
    stack.models.chat_status = 200
    assert notices(response) == {"sessions_given": 3, "extraction_empty": 1, "sessions_failed": 1, "memories_stored": 4}
    (failed,) = (notice.message for notice in response.notices if notice.code == "sessions_failed")
    assert "Error code: 400" in failed
    assert {"life::dog: Rex", "life::boat: Aurora"} <= set(texts_of(served.search(question("what", 0)).items))
    assert next(iter(stack.double.users.values())).blobs == []


def test_the_event_of_a_flush_that_failed_half_way_is_removed(stack: Stack, served: Served) -> None:
    def fail() -> None:
        raise ApiError(520, "Failed to process profile")

    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    stack.double.after_event = fail
    response = served.ingest(day_of("n", 1, told("s2", "My dog is called Luna.", day=1)))
    assert notices(response) == {"sessions_given": 1, "extraction_empty": 1, "sessions_failed": 1}
    texts = texts_of(served.search(question("dog", 1)).items)
    assert "life::dog: Rex" in texts
    assert not any("Luna" in text for text in texts)


def test_a_day_without_words_needs_no_model_and_says_nothing(stack: Stack, served: Served) -> None:
    empty = make_day_without_access(served, make_session("s", ["", " "]))
    assert (empty.visible_through_day, list(empty.notices)) == (0, [])
    assert stack.models.prompts == []


def make_day_without_access(served: Served, session: pb.Session) -> pb.IngestResponse:
    frames = day_of("n", 0, session)
    frames[0].header.ClearField("model_access")
    return served.ingest(frames)


def test_without_model_access_nothing_is_extracted_or_searched(stack: Stack, served: Served) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        make_day_without_access(served, told("s", "My dog is called Rex."))
    assert code_of(refused.value) is grpc.StatusCode.INVALID_ARGUMENT
    assert bad_fields(refused.value) == ["header.model_access"]
    served.ingest(day_of("n", 0, told("s", "My dog is called Rex.")))
    prompt_count, embedded = len(stack.models.prompts), len(stack.models.embedded)
    with pytest.raises(grpc.RpcError) as unsearched:
        served.search(make_query("n", "dog", 0))
    assert bad_fields(unsearched.value) == ["model_access"]
    off = [pb.Option(key="events", value="off")]
    assert served.find("n", "dog", 0, options=off) == ["life::dog: Rex"]
    assert (len(stack.models.prompts), len(stack.models.embedded)) == (prompt_count, embedded)


def test_a_session_longer_than_a_blob_is_given_in_parts_and_counts_once(stack: Stack) -> None:
    memory = MemobaseMemory(stack.data_dir, replace(stack.settings, blob_bytes=6_000))
    words = "My dog is called Rex. " + "wörter " * 3_000
    with serve(memory, stack.data_dir) as served:
        response = served.ingest(day_of("n", 0, make_session("s", [words, "Yes.", "My boat is Aurora."])))
        items = served.search(question("boat dog", 0)).items
    assert notices(response) == {"sessions_given": 1, "memories_stored": 7}
    prompts = [prompt for prompt in stack.models.prompts if "### Input Chats" in prompt]
    assert len(prompts) > 3
    assert max(len(prompt.encode()) for prompt in prompts) < 6_100
    assert {"life::dog: Rex", "life::boat: Aurora"} <= set(texts_of(items))
    assert all(list(item.source_session_ids) == ["s"] for item in items)


# ------------------------------------------------------------------ questions


def test_whole_events_can_be_searched_or_none(served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.", "I like soup."), told("s2", "My boat is Aurora.")))
    whole = served.search(question("soup", 0, events="event", profile_share="0", similarity="-1")).items
    assert len(whole) == 2
    assert whole[0].text.count("\n") == 1
    assert list(whole[0].source_session_ids) == ["s1"]
    assert whole[0].score > whole[1].score
    profile = served.search(question("soup", 0, events="off")).items
    assert {item.text for item in profile} == {"life::dog: Rex", "life::boat: Aurora"}
    assert {item.score for item in profile} == {1.0}


def test_a_question_may_be_searched_with_its_time(stack: Stack, served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    served.search(question("What did I say?", 0))
    assert stack.models.embedded[-1] == "What did I say?"
    served.search(question("What did I say?", 0, question_time="on"))
    assert stack.models.embedded[-1] == "[2025-01-02 09:00+00:00] What did I say?"


def test_odd_questions_travel_unharmed(stack: Stack, served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    odd = "a&query=b#c%20d+e ü 🐕 \n?"
    served.search(question(odd, 0))
    assert stack.models.embedded[-1] == odd
    served.search(question("🐕" * 16_000, 0))
    assert stack.models.embedded[-1] == "🐕" * 4_000


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("events", "some", "expected one of gist, event, off"),
        ("k", "0", "expected an integer of at least 1"),
        ("profile_share", "101", "expected 0 to 100"),
        ("question_time", "yes", "expected one of off, on"),
        ("similarity", "2", "expected a number from -1.0 to 1.0"),
        ("similarity", "nan", "expected a number from -1.0 to 1.0"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(served: Served, key: str, value: str, reason: str) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    with pytest.raises(grpc.RpcError) as refused:
        served.search(question("dog", 0, **{key: value}))
    assert bad_fields(refused.value) == ["options"]
    assert f"{key}: {reason}" in message_of(refused.value)


def test_an_embedder_that_fails_in_a_search_is_an_error_and_not_an_empty_result(stack: Stack, served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    stack.models.embedding_status = 500
    with pytest.raises(grpc.RpcError) as failed:
        served.search(question("dog", 0))
    assert code_of(failed.value) is grpc.StatusCode.UNAVAILABLE
    stack.models.embedding_status = 200
    assert len(served.search(question("dog", 0)).items) == 2


def _items(letter: str, sizes: list[int]) -> list[Item]:
    return [Item(f"{letter}{'x' * size}", 1.0 / (1 + rank)) for rank, size in enumerate(sizes)]


_SIZES = st.lists(st.integers(0, 60), max_size=8)


@given(_SIZES, _SIZES, st.floats(0, 1), st.none() | st.integers(1, 12), st.none() | st.integers(1, 90))
def test_profile_and_events_share_the_bounds(
    slots: list[int], events: list[int], share: float, max_items: int | None, max_tokens: int | None
) -> None:
    """Never above a bound; in order; nothing only where there is nothing, or not one character fits."""
    profile, event_items = _items("p", slots), _items("e", events)
    items = list(fit_together(profile, event_items, share, max_items, max_tokens).items)
    assert max_items is None or len(items) <= max_items
    assert max_tokens is None or sum(tokens_by_bytes(item.text) for item in items) <= max_tokens
    texts = [item.text for item in items]
    starts = [text[0] for text in texts]
    assert starts == sorted(starts, reverse=True)
    assert bool(items) == bool(profile or event_items)
    if max_items is None and max_tokens is None:
        assert items == [*profile, *event_items]


def test_a_user_follows_from_the_namespace_and_from_nothing_else() -> None:
    assert user_of("n", 0) == user_of("n", 0)
    assert len({user_of(name, generation) for name in ("n", "N", "n1", "0/n") for generation in (0, 1)}) == 8
