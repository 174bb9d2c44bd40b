"""Tests conversation.py: the messages that LangMem gets for a session, and how a long session is cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from memarena_backend import Participant, Role, Session, Turn
from memarena_backend_langmem.conversation import PART_BYTES, parts_of

MAYA = Participant("p1", "Maya Chen", Role.OWNER)
OMAR = Participant("p2", "Omar Haddad", Role.PERSON)
AT = datetime(2025, 1, 3, 9, 15, tzinfo=UTC)


def session(*texts: str, place: str = "") -> Session:
    turns = tuple(Turn(f"t{n}", (MAYA, OMAR)[n % 2], text, AT + timedelta(minutes=n)) for n, text in enumerate(texts))
    return Session("s1", (MAYA, OMAR), AT, AT, "", place, "", turns)


def test_the_owner_is_the_user_and_the_others_are_named() -> None:
    assert parts_of(session("My dog is called Rex.", "How nice!", place="Luna Café")) == [
        [
            {"role": "user", "content": "Friday 3 January 2025 [at Luna Café]\n09:15 Maya Chen: My dog is called Rex."},
            {"role": "assistant", "content": "09:16 Omar Haddad: How nice!"},
        ]
    ]


def test_a_session_without_text_has_no_parts() -> None:
    assert parts_of(session("", "  \n")) == []


@pytest.mark.parametrize("text", ["é" * 30_000, "word " * 5_000, "🙂" * 9_000])
def test_a_long_session_is_cut_into_parts_that_begin_with_its_date(text: str) -> None:
    parts = parts_of(session("Hello.", text, "Bye."))
    assert len(parts) > 2
    for part in parts:
        assert part[0]["content"].startswith("Friday 3 January 2025\n")
        assert sum(len(message["content"].encode()) for message in part) <= PART_BYTES + 100
    lines = [message["content"].removeprefix("Friday 3 January 2025\n") for part in parts for message in part]
    assert "".join(line.removeprefix("09:16 Omar Haddad: ") for line in lines[1:-1]) == text
    assert (lines[0], lines[-1]) == ("09:15 Maya Chen: Hello.", "09:17 Maya Chen: Bye.")
