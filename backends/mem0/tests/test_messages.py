"""What Mem0 is given of a session, what an item says of where it is from, what a day's notices say, what is set."""

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


def test_a_session_is_one_conversation_of_the_owner_and_named_others() -> None:
    given = whole_session(session("My dog is called Rex.", "How nice!", place="Luna Café"), MAYA)
    assert given is not None
    assert given.messages == [
        {"role": "user", "content": "[face to face, at Luna Café] Maya Chen: My dog is called Rex."},
        {"role": "assistant", "content": "Omar Haddad: How nice!"},
    ]
    assert given.metadata == {"session_id": "s1", "said_at": AT.isoformat(), "created_at": AT.isoformat()}


def test_word_for_word_each_turn_stands_by_itself_and_is_named() -> None:
    given = single_turns(session("  a\n b ", "", "c"), MAYA)
    assert [each.messages[0]["content"] for each in given] == ["Maya Chen:   a\n b ", "Maya Chen: c"]
    assert [each.metadata["turn_id"] for each in given] == ["t0", "t2"]
    assert given[1].metadata["created_at"] == given[1].metadata["said_at"] == AT.replace(minute=22).isoformat()


def test_where_nobody_said_anything_there_is_nothing_to_give() -> None:
    assert whole_session(session("", " \n"), MAYA) is None
    assert single_turns(session("", " \n"), MAYA) == []


def test_an_item_names_what_it_is_from() -> None:
    given = single_turns(session("Rex barks."), MAYA)[0]
    item = item_of("Maya Chen: Rex barks.", 0.5, given.metadata, derived=False)
    assert (item.session_ids, item.turn_ids, item.time) == (("s1",), ("t0",), AT.replace(minute=20).isoformat())
    fact = item_of("User has a dog", 0.5, {"session_id": "s1", "said_at": AT.isoformat()}, derived=True)
    assert (fact.session_ids, fact.turn_ids, fact.derived) == (("s1",), (), True)


def test_a_day_without_sessions_says_nothing_and_one_with_them_always_what_it_gave_and_stored() -> None:
    assert Tally().notices() == []
    assert {each.code: each.count for each in Tally(sessions_given=2).notices()} == {
        "sessions_given": 2,
        "memories_stored": 0,
    }


def test_why_the_first_session_was_lost_is_said() -> None:
    tally = Tally(sessions_given=3)
    for reason in ("the model refused", "too long"):
        tally.lost(reason)
    (lost,) = [each for each in tally.notices() if each.code == "sessions_failed"]
    assert (lost.count, lost.message) == (2, "sessions that were lost, the first because: the model refused")


def test_settings_are_whole_numbers_within_bounds() -> None:
    assert read_settings({}) == Settings()
    assert read_settings({"MEMARENA_MEM0_EXTRACTION_TOKENS": "300"}).extraction_tokens == 300
    with pytest.raises(ServeError, match="MEMARENA_MEM0_EMBEDDING_CHARS: expected a whole number from 100"):
        read_settings({"MEMARENA_MEM0_EMBEDDING_CHARS": "9"})
