"""Tests messages.py, tally.py and settings.py: messages for Mem0, sources of items, notices of a day, settings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from memarena_backend import Participant, Role, ServeError, Session, Turn
from memarena_backend_mem0.messages import item_of, single_turns, whole_session
from memarena_backend_mem0.settings import Settings, read_settings
from memarena_backend_mem0.tally import Tally

MAYA = Participant("p1", "Maya Chen", Role.OWNER)
OMAR = Participant("p2", "Omar Haddad", Role.PERSON)
AT = datetime(2025, 1, 3, 9, 15, tzinfo=UTC)


def session(*texts: str, place: str = "") -> Session:
    turns = tuple(
        Turn(f"t{number}", (MAYA, OMAR)[number % 2], text, AT.replace(minute=20 + number))
        for number, text in enumerate(texts)
    )
    return Session("s1", (MAYA, OMAR), AT, AT, "face_to_face" if place else "", place, "", turns)


def test_a_session_is_a_conversation_of_the_owner_and_named_others() -> None:
    part = whole_session(session("My dog is called Rex.", "How nice!", place="Luna Café"), MAYA)
    assert part is not None
    assert part.messages == [
        {"role": "user", "content": "[face to face, at Luna Café] Maya Chen: My dog is called Rex."},
        {"role": "assistant", "content": "Omar Haddad: How nice!"},
    ]
    assert part.metadata == {"session_id": "s1", "said_at": AT.isoformat(), "created_at": AT.isoformat()}


def test_single_turns_are_parts_with_their_turn_id_and_unchanged_text() -> None:
    parts = single_turns(session("  a\n b ", "", "c"), MAYA)
    assert [part.messages[0]["content"] for part in parts] == ["Maya Chen:   a\n b ", "Maya Chen: c"]
    assert [part.metadata["turn_id"] for part in parts] == ["t0", "t2"]
    assert parts[1].metadata["created_at"] == parts[1].metadata["said_at"] == AT.replace(minute=22).isoformat()


def test_a_session_without_text_has_no_parts() -> None:
    assert whole_session(session("", " \n"), MAYA) is None
    assert single_turns(session("", " \n"), MAYA) == []


def test_an_item_has_the_sources_of_its_metadata() -> None:
    part = single_turns(session("Rex barks."), MAYA)[0]
    item = item_of("Maya Chen: Rex barks.", 0.5, part.metadata, derived=False)
    assert (item.session_ids, item.turn_ids, item.time) == (("s1",), ("t0",), AT.replace(minute=20).isoformat())
    fact = item_of("User has a dog", 0.5, {"session_id": "s1", "said_at": AT.isoformat()}, derived=True)
    assert (fact.session_ids, fact.turn_ids, fact.derived) == (("s1",), (), True)


def test_notices_are_none_for_an_empty_day_and_else_always_state_sessions_and_memories() -> None:
    assert Tally().notices() == []
    assert {notice.code: notice.count for notice in Tally(sessions_given=2).notices()} == {
        "sessions_given": 2,
        "memories_stored": 0,
    }


def test_the_notice_of_failed_sessions_has_the_first_reason() -> None:
    tally = Tally(sessions_given=3)
    for reason in ("the model refused", "too long"):
        tally.lost(reason)
    (lost,) = [notice for notice in tally.notices() if notice.code == "sessions_failed"]
    assert (lost.count, lost.message) == (2, "sessions that were lost, the first because: the model refused")


def test_settings_are_whole_numbers_within_bounds() -> None:
    assert read_settings({}) == Settings()
    assert read_settings({"MEMARENA_MEM0_EXTRACTION_TOKENS": "300"}).extraction_tokens == 300
    with pytest.raises(ServeError, match="MEMARENA_MEM0_EMBEDDING_CHARS: expected a whole number from 100"):
        read_settings({"MEMARENA_MEM0_EMBEDDING_CHARS": "9"})
