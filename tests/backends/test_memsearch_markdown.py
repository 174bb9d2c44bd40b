"""Tests a day as markdown: no text is lost or added, and chunks are mapped back to their turns."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_backend import Day, Participant, Role, Session, Turn
from memarena_backend_memsearch.markdown import HEADING_LIMIT_CHARS, day_file, heading_of

OWNER = Participant("p1", "Maya Chen", Role.OWNER)
FRIEND = Participant("p2", "Omar\nHaddad", Role.PERSON)
MORNING = datetime(2025, 1, 3, 9, 15, tzinfo=UTC)

LINES = st.sampled_from(
    ["see you", "# not a heading", "", "   ", "- a list", "<!-- hidden -->", "Ünï 😀", "x" * 300, "a\rb"]
)
TEXTS = st.lists(LINES, min_size=1, max_size=5).map("\n".join)


def session(number: int, texts: list[str], place: str = "") -> Session:
    turns = tuple(
        Turn(f"s{number}.t{position}", (OWNER, FRIEND)[position % 2], text, MORNING + timedelta(minutes=position))
        for position, text in enumerate(texts)
    )
    return Session(
        f"s{number}", (OWNER, FRIEND), MORNING, MORNING + timedelta(hours=1), "voice_message", place, "", turns
    )


def day(*sessions: Session) -> Day:
    return Day(2, date(2025, 1, 3), OWNER, sessions, ())


def test_a_day_reads_like_a_diary() -> None:
    """One heading per session, speaker and time on each line, no id anywhere."""
    file = day_file(day(session(1, ["Hello", "Hi there\n# really"], place="Luna Café")))
    assert file.name == "000002-2025-01-03.md"
    assert file.text.split("\n") == [
        "# Friday 3 January 2025",
        "",
        "## Friday 3 January 2025, 09:15 to 10:15 [voice message, at Luna Café]",
        "",
        "**Maya Chen** 09:15: Hello",
        "",
        "**Omar Haddad** 09:16: Hi there",
        "  # really",
        "",
    ]
    assert [(turn.first, turn.last, turn.turn_id) for turn in file.turns] == [(5, 5, "s1.t0"), (7, 8, "s1.t1")]


def test_a_day_without_words_has_no_turns() -> None:
    assert day_file(day()).turns == ()
    assert day_file(day(session(1, ["", "  \n "]))).turns == ()


def test_a_heading_fits_milvus_in_any_script() -> None:
    heading = heading_of(session(1, ["x"], place="茶" * 2_000))
    assert len(heading) <= HEADING_LIMIT_CHARS
    assert len(heading.encode()) <= 1_024


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(TEXTS, max_size=6), max_size=4), st.integers(200, 1_500))
def test_every_turn_is_in_chunks_that_find_back_to_it(texts: list[list[str]], size: int) -> None:
    """Each line of each turn stands in a chunk whose lines name that turn; a chunk is of one session."""
    from memsearch.chunker import chunk_markdown  # type: ignore[import-untyped]

    sessions = [session(number, session_texts) for number, session_texts in enumerate(texts)]
    file = day_file(day(*sessions))
    chunks = chunk_markdown(file.text, source="x.md", max_chunk_size=size)
    turns_by_id = {turn.turn_id: turn for each in sessions for turn in each.turns}
    assert {turn.turn_id for turn in file.turns} == {key for key, turn in turns_by_id.items() if turn.text.strip()}
    for turn in file.turns:
        holding = [chunk for chunk in chunks if turn in file.between(chunk.start_line, chunk.end_line)]
        words = squeezed("".join(chunk.content for chunk in holding))
        for line in re.split(r"\r\n|\r|\n", turns_by_id[turn.turn_id].text):
            assert squeezed(line) in words
    for chunk in chunks:
        session_id = file.session_at(chunk.start_line).session_id
        assert {turn.session_id for turn in file.between(chunk.start_line, chunk.end_line)} <= {session_id}


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)
