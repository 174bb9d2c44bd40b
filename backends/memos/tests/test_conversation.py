"""Tests conversation.py and settings.py: roles, names and times of messages, and how a long session is cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from memarena_backend import Participant, Role, ServeError, Session, Turn
from memarena_backend_memos.conversation import Part, parts_of
from memarena_backend_memos.settings import Settings, read_settings

MAYA = Participant("p1", "Maya Chen", Role.OWNER)
OMAR = Participant("p2", "Omar  Haddad\n", Role.PERSON)
START = datetime(2025, 1, 3, 9, 5, tzinfo=UTC)


def session(*utterances: tuple[Participant, str], place: str = "") -> Session:
    turns = tuple(
        Turn(f"t{number}", speaker, text, START + timedelta(minutes=number))
        for number, (speaker, text) in enumerate(utterances)
    )
    return Session("s1", (MAYA, OMAR), START, START, "face_to_face" if place else "", place, "", turns)


def lines(parts: list[Part]) -> list[str]:
    messages = chain.from_iterable(part.messages for part in parts)
    return [f"{message.role}:{message.content}" for message in messages]


def test_the_owner_is_the_user_and_all_others_are_named_assistants() -> None:
    assert lines(parts_of(session((MAYA, "Hi."), (OMAR, "Hello!")), MAYA, 12_000)) == [
        "user: [Friday 3 January 2025 09:05] Maya Chen: Hi.",
        "assistant: [Friday 3 January 2025 09:06] Omar Haddad: Hello!",
    ]


def test_the_first_message_has_the_setting_and_turns_without_text_are_skipped() -> None:
    parts = parts_of(session((OMAR, " \n"), (MAYA, "Hi."), (MAYA, "So."), place="Luna Café"), MAYA, 12_000)
    assert lines(parts) == [
        "user: [Friday 3 January 2025 09:06] Maya Chen: [face to face, at Luna Café] Hi.",
        "user: [Friday 3 January 2025 09:07] Maya Chen: So.",
    ]
    assert [(part.session_id, part.said_at) for part in parts] == [("s1", "2025-01-03T09:06:00+00:00")]


def test_a_session_without_text_has_no_parts() -> None:
    assert parts_of(session((MAYA, "")), MAYA, 12_000) == []


@pytest.mark.parametrize("text", ["x" * 9_000, "語" * 3_000, "👩‍👩‍👧" * 500])
def test_a_long_turn_is_cut_between_characters_without_loss(text: str) -> None:
    parts = parts_of(session((MAYA, "First."), (OMAR, text), (MAYA, "Last.")), MAYA, 1_000)
    assert all(sum(message.size_bytes for message in part.messages) <= 1_000 for part in parts)
    joined = "".join(line.partition("Omar Haddad: ")[2] for line in lines(parts))
    assert joined == text
    assert {part.said_at for part in parts} == {"2025-01-03T09:05:00+00:00", "2025-01-03T09:06:00+00:00"}


def test_turns_are_packed_into_parts_up_to_the_limit() -> None:
    parts = parts_of(session(*[(MAYA, "y" * 400)] * 5), MAYA, 1_000)
    assert [len(part.messages) for part in parts] == [2, 2, 1]


def test_settings_have_defaults_and_bounds() -> None:
    assert read_settings({}) == Settings(part_bytes=12_000, reply_tokens=2_048)
    assert read_settings({"MEMARENA_MEMOS_PART_BYTES": "5000"}).part_bytes == 5_000
    for value in ("999", "1e4", "-1", "٣٠٠٠"):
        with pytest.raises(ServeError, match="MEMARENA_MEMOS_PART_BYTES: expected a whole number from 1000"):
            read_settings({"MEMARENA_MEMOS_PART_BYTES": value})
