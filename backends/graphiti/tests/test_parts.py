"""Tests the modules that do not import Graphiti: episodes of a session, replies of a model, items, settings."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from memarena_backend import Participant, Role, ServeError, Session, Turn
from memarena_backend_graphiti.episodes import Source, episodes_of
from memarena_backend_graphiti.items import GraphMatch, item_of
from memarena_backend_graphiti.replies import UnusableReplyError, parse_reply
from memarena_backend_graphiti.settings import Settings, read_settings
from pydantic import BaseModel

MAYA = Participant("p0", "Maya Chen", Role.OWNER)
NINE = datetime(2025, 1, 3, 9, 0, tzinfo=timezone(timedelta(hours=1)))


def _session(*texts: str) -> Session:
    turns = tuple(Turn(f"t{n}", MAYA, text, NINE + timedelta(minutes=n)) for n, text in enumerate(texts))
    return Session("s1", (MAYA,), NINE, NINE, "phone_call", "Luna Café", "", turns)


def test_a_session_becomes_an_episode_with_its_setting_and_speakers() -> None:
    (episode,) = episodes_of(_session("Hello.", " ", "Bye."), "session", 1_000)
    assert episode.text == "[phone call, at Luna Café]\nMaya Chen: Hello.\nMaya Chen: Bye."
    assert episode.source == Source("s1", (), "2025-01-03T09:00:00+01:00")
    assert Source.from_json(episode.source.to_json()) == episode.source


def test_a_session_above_the_limit_is_cut_between_turns_without_loss() -> None:
    episodes = episodes_of(_session(*(f"Number {n}." for n in range(20))), "session", 100)
    assert len(episodes) > 1
    lines = [line for episode in episodes for line in episode.text.splitlines()[1:]]
    assert lines == [f"Maya Chen: Number {n}." for n in range(20)]


def test_a_turn_above_the_limit_becomes_an_uncut_episode() -> None:
    episodes = episodes_of(_session("a", "b" * 500, "c"), "session", 100)
    assert [len(episode.text) > 500 for episode in episodes] == [False, True, False]


def test_an_episode_per_turn_has_the_id_and_time_of_its_turn() -> None:
    episodes = episodes_of(_session("Hello.", "", "Bye."), "turn", 1_000)
    assert [episode.source.turn_ids for episode in episodes] == [("t0",), ("t2",)]
    assert episodes[1].said_at == NINE + timedelta(minutes=2)


def test_a_session_without_text_has_no_episode() -> None:
    assert episodes_of(_session("", "  "), "session", 1_000) == []


class _Form(BaseModel):
    edges: list[int]


@pytest.mark.parametrize("text", ['{"edges": [1]}', '```json\n{"edges": [1]}\n```', ' {"edges": [1], "more": 2}\n'])
def test_a_reply_of_the_form_is_parsed(text: str) -> None:
    assert parse_reply(text, "stop", _Form)["edges"] == [1]


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("", "stop", "an empty reply"),
        ("I see no facts.", "stop", "no JSON"),
        ('{"edges": [1,', "length", "was cut off"),
        ("[1]", "stop", "no JSON object"),
        ('{"edges": ["x"]}', "stop", "another form than _Form: edges.0"),
        ('{"facts": []}', "stop", "another form than _Form: edges"),
        ("[" * 1_000_000, "length", "no JSON"),
        ('{"edges": [], "name": "\\ud800"}', "stop", "half a character"),
        ('{"edges": [], "name": "a\\u0000b"}', "stop", "U+0000"),
    ],
)
def test_an_unusable_reply_raises_an_error_of_one_line_with_the_reason(text: str, finish: str, reason: str) -> None:
    with pytest.raises(UnusableReplyError) as caught:
        parse_reply(text, finish, _Form)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_an_escaped_backslash_before_u0000_is_accepted() -> None:
    reply = {"edges": [], "name": "backslash \\u0000 as it is written"}
    assert parse_reply(json.dumps(reply), "stop", _Form) == reply


def test_an_item_has_its_validity_and_names_each_session_once() -> None:
    sources = (Source("s1", (), "2025-01-01T09:00:00+01:00"), Source("s1", ("t2",), "2025-01-02T09:00:00+01:00"))
    item = item_of(
        GraphMatch("A fact", 0.5, sources, datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
    )
    assert item.text == "A fact (from 2025-01-01 to 2025-02-01)"
    assert (item.session_ids, item.turn_ids, item.time) == (("s1",), ("t2",), "2025-01-02T09:00:00+01:00")
    assert (item.valid_from, item.valid_until) == ("2025-01-01T00:00:00+00:00", "2025-02-01T00:00:00+00:00")
    assert item.derived


def test_an_item_without_sources_has_no_time() -> None:
    item = item_of(GraphMatch("A fact", 0.5, ()))
    assert (item.text, item.valid_from, item.valid_until, item.time) == ("A fact", "", "", "")


def test_settings_are_read_from_their_variables() -> None:
    environment = {"MEMARENA_GRAPHITI_EPISODE": "turn", "MEMARENA_GRAPHITI_REPLY_TOKENS": "512"}
    assert read_settings(environment) == Settings(episode="turn", reply_tokens=512)
    assert read_settings({}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [("EPISODE", "day"), ("REPLY_TOKENS", "12"), ("PREVIOUS_EPISODES", "-1"), ("BUFFER_POOL_MB", "x")],
)
def test_an_invalid_setting_is_refused_with_its_variable(name: str, value: str) -> None:
    with pytest.raises(ServeError, match=f"MEMARENA_GRAPHITI_{name}: expected"):
        read_settings({f"MEMARENA_GRAPHITI_{name}": value})
