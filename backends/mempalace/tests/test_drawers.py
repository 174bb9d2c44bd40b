"""Tests drawers.py: a day is split into drawers, each a whole exchange, verbatim, within the limit of length."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from memarena_backend import Day, Event, Participant, Role, ServeError, Session, Turn
from memarena_backend_mempalace.drawers import LONGEST_CHARS, Drawer, drawers_of
from memarena_backend_mempalace.settings import read_settings

MAYA = Participant("p1", "Maya", Role.OWNER)
OMAR = Participant("p2", "Omar", Role.PERSON)
AT = datetime(2025, 1, 3, 9, 15, tzinfo=UTC)


def drawers(*utterances: tuple[Participant, str], place: str = "", events: tuple[Event, ...] = ()) -> list[Drawer]:
    turns = tuple(Turn(f"t{n}", who, text, AT + timedelta(minutes=n)) for n, (who, text) in enumerate(utterances))
    # In order: id, participants, start, end, modality, place, group, turns.
    session = Session("s1", (MAYA, OMAR), AT, AT, "", place, "", turns)
    return drawers_of(Day(0, date(2025, 1, 3), MAYA, (session,) if utterances else (), events))


def test_an_exchange_begins_with_a_turn_of_the_owner() -> None:
    result = drawers(
        (OMAR, "Did you see the fire at the harbour?"),
        (MAYA, "I did, from the window of my kitchen."),
        (OMAR, "They say that nobody was hurt."),
        (MAYA, "Good, my brother works next to it."),
    )
    assert [(drawer.text, drawer.turn_ids) for drawer in result] == [
        ("Omar: Did you see the fire at the harbour?", ("t0",)),
        ("Maya: I did, from the window of my kitchen.\nOmar: They say that nobody was hurt.", ("t1", "t2")),
        ("Maya: Good, my brother works next to it.", ("t3",)),
    ]
    assert [drawer.said_at for drawer in result] == [(AT + timedelta(minutes=n)).isoformat() for n in (0, 1, 3)]
    # Number in the session, number of its first piece, count of pieces.
    assert [(drawer.number, drawer.first, drawer.pieces) for drawer in result] == [(0, 0, 1), (1, 1, 1), (2, 2, 1)]


def test_a_short_turn_is_joined_to_the_previous_turn() -> None:
    (drawer,) = drawers((MAYA, "We move to Oslo in the spring."), (MAYA, "Yes, all of us."))
    assert drawer.text == "Maya: We move to Oslo in the spring.\nMaya: Yes, all of us."
    assert drawer.turn_ids == ("t0", "t1")


def test_an_exchange_too_long_for_a_drawer_is_cut_between_turns() -> None:
    result = drawers((MAYA, "a" * 500), (OMAR, "b" * 500), (OMAR, "c" * 100))
    assert [drawer.turn_ids for drawer in result] == [("t0",), ("t1", "t2")]
    assert all(len(drawer.text) <= LONGEST_CHARS and drawer.pieces == 1 for drawer in result)


@pytest.mark.parametrize("text", ["word " * 900, "x" * 5_000, " \n\t" * 700 + ".", "é🙂 " * 1_000])
def test_the_pieces_of_a_long_turn_concatenate_to_the_turn(text: str) -> None:
    result = drawers(
        (MAYA, "Short to begin with, but not too short."), (MAYA, text), (MAYA, "And this is its end, at last.")
    )
    first, *pieces, last = result
    assert "".join(piece.text for piece in pieces) == f"Maya: {text}"
    assert all(0 < len(piece.text) <= LONGEST_CHARS for piece in pieces)
    assert {(piece.first, piece.pieces, piece.turn_ids) for piece in pieces} == {(1, len(pieces), ("t1",))}
    assert [first.number, last.number, last.first] == [0, len(pieces) + 1, len(pieces) + 1]


def test_text_is_unchanged_and_a_turn_without_text_makes_no_drawer() -> None:
    (drawer,) = drawers((MAYA, "  two\r\nlines "), (OMAR, " \n"), (OMAR, ""))
    assert drawer.text == "Maya:   two\r\nlines "
    assert drawers((MAYA, ""), (OMAR, "  ")) == []


def test_every_drawer_begins_with_the_setting_of_its_session() -> None:
    result = drawers(
        (MAYA, "The soup here is still the best."), (MAYA, "And the bread is from across the street."), place="Luna"
    )
    assert [drawer.text.split("\n")[0] for drawer in result] == ["[at Luna]", "[at Luna]"]


def test_an_event_makes_a_separate_drawer() -> None:
    event = Event("e1", AT, "A storm came over the harbour.", "weather")
    (drawer,) = drawers(events=(event,))
    assert (drawer.text, drawer.source, drawer.is_event, drawer.turn_ids) == (event.text, "e1", True, ())


def test_an_invalid_setting_is_refused_by_name() -> None:
    assert not read_settings({}).only_in_process
    assert read_settings({"MEMARENA_MEMPALACE_EMBEDDER": "process"}).only_in_process
    with pytest.raises(ServeError, match="MEMARENA_MEMPALACE_EMBEDDER: expected auto or process, got 'gpu'"):
        read_settings({"MEMARENA_MEMPALACE_EMBEDDER": "gpu"})
