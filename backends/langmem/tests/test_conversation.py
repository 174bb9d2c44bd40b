"""What LangMem is given of a session, and which tool calls of a reply count."""

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


def test_a_session_without_words_is_not_given() -> None:
    assert parts_of(session("", "  \n")) == []


@pytest.mark.parametrize("text", ["é" * 30_000, "word " * 5_000, "🙂" * 9_000])
def test_a_long_session_is_given_in_parts_that_each_say_when_it_was(text: str) -> None:
    parts = parts_of(session("Hello.", text, "Bye."))
    assert len(parts) > 2
    for part in parts:
        assert part[0]["content"].startswith("Friday 3 January 2025\n")
        assert sum(len(message["content"].encode()) for message in part) <= PART_BYTES + 100
    said = [message["content"].removeprefix("Friday 3 January 2025\n") for part in parts for message in part]
    assert "".join(each.removeprefix("09:16 Omar Haddad: ") for each in said[1:-1]) == text
    assert (said[0], said[-1]) == ("09:15 Maya Chen: Hello.", "09:17 Maya Chen: Bye.")
