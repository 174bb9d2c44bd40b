"""Tests groups, places and relations in all forms that data sets use, and round trips of rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.io.rows import dump_row, session_of
from memarena_dataset.model import Session

from .refusing import refusal


@pytest.mark.parametrize(
    "groups",
    [
        [{"group_id": "g1", "name": "Rowing Club", "members": ["ada", "bo_lind"]}],
        [
            {
                "id": "g1",
                "title": "Rowing Club",
                "members": [{"agent_id": "ada"}, {"agent_id": "bo_lind", "role": "cox"}],
            }
        ],
        {"g1": {"group_name": "Rowing Club", "member_ids": ["ada", "bo_lind"]}},
        {"g1": {"group_id": "g1", "label": "Rowing Club", "members": {"ada": "stroke", "bo_lind": "cox"}}},
        {"groups": [{"group_id": "g1", "name": "Rowing Club", "participants": ["ada", "bo_lind"]}]},
    ],
)
def test_groups_are_read_in_every_form(tiny: Any, groups: Any) -> None:
    (tiny.path / "groups.json").write_text(json.dumps(groups))
    with open_dataset(tiny.path) as dataset:
        group = dataset.groups["g1"]
        assert (group.name, group.members) == ("Rowing Club", ("ada", "bo_lind"))


@pytest.mark.parametrize(
    "locations",
    [
        [{"location_id": "l1", "name": "Pier"}],
        [{"id": "l1", "title": "Pier"}],
        {"l1": {"name": "Pier"}},
        {"l1": "Pier"},
    ],
)
def test_places_are_read_in_every_form(tiny: Any, locations: Any) -> None:
    (tiny.path / "locations.json").write_text(json.dumps(locations))
    with open_dataset(tiny.path) as dataset:
        assert dataset.locations["l1"].name == "Pier"


def test_groups_in_an_unknown_form_are_named(tiny: Any) -> None:
    (tiny.path / "groups.json").write_text('[{"group_id": "g1", "members": 7}]')
    assert refusal(tiny.path).startswith("groups.json: 0.members: a list of agents")
    (tiny.path / "groups.json").write_text('"none"')
    assert refusal(tiny.path).startswith("groups.json: a list of objects or an object keyed by group_id")


@pytest.mark.parametrize(
    ("neighbors", "relation"),
    [
        (["bo_lind"], ""),
        ([{"agent_id": "bo_lind", "relation": "brother"}], "brother"),
        ([{"id": "bo_lind", "relationship": "brother"}], "brother"),
        ({"bo_lind": "brother"}, "brother"),
        ({"bo_lind": {"relation_type": "brother", "weight": 1}}, "brother"),
        ({"bo_lind": 0.33}, ""),
        ({"brother": ["bo_lind"]}, "brother"),
        (None, ""),
    ],
)
def test_relations_are_read_in_every_form(tiny: Any, neighbors: Any, relation: str) -> None:
    tiny.write_rows("agents_personas.jsonl", [{"agent_id": "ada", "social_neighbors": neighbors}])
    with open_dataset(tiny.path) as dataset:
        assert dataset.relationship("ada", "bo_lind") == relation
        assert dataset.relationship("bo_lind", "ada") == ""
        assert ("bo_lind" in dataset.neighbors("ada")) == (neighbors is not None)


def test_a_relation_in_the_question_has_priority(tiny: Any) -> None:
    tiny.write_rows("agents_personas.jsonl", [{"agent_id": "ada", "social_neighbors": {"bo_lind": "brother"}}])
    change = {"asker_agent_id": "bo_lind", "metadata": {"relationship": "twin"}}
    tiny.edit("eval_instances/d7_qa.jsonl", "q1", lambda row: row.update(change))
    with open_dataset(tiny.path) as dataset:
        assert dataset.relationship("ada", "bo_lind") == "twin"


# ------------------------------------------------------------------ round trip

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(
    st.text("xyz_", min_size=4, max_size=8).filter(lambda key: not key.startswith("_")), JSON, max_size=3
)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(top=UNKNOWN, inner=UNKNOWN, text=WORDS)
def test_a_row_read_and_written_again_loses_nothing(top: Any, inner: Any, text: str) -> None:
    turn = {
        "turn_id": "t1",
        "session_id": "s1",
        "speaker_id": "ada",
        "text": text,
        "timestamp": 0.5,
        "metadata": inner,
        **inner,
    }
    raw = {"session_id": "s1", "participants": ["ada"], "turns": [turn], "start_time": 0.5, "end_time": 0.75, **top}
    session = session_of(json.loads(json.dumps(raw)))
    assert isinstance(session, Session)
    assert dump_row(session) == raw
