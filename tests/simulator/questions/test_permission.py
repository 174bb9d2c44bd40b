"""Tests questions/permission.py on generated worlds: ALLOW and DENY are balanced per fact, in the same words."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_dataset.checks.permission import auc_of_feature
from memarena_masim.config import WorldConfig, preset
from memarena_masim.output.generate import generate


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world with enough people for about a hundred permission questions."""
    out = tmp_path_factory.mktemp("permission") / "world"
    generate(WorldConfig(agents=20, days=7, density=0.4, question_share=2.6, seed=111), out, workers=1)
    return out


def items(world: Path) -> list[dict[str, Any]]:
    path = world / "eval_instances" / "d4_permission.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pool(world: Path) -> list[dict[str, Any]]:
    """Return the rows that count for F1_PU."""
    return [row for row in items(world) if not (row["ground_truth"]["self_item"] or row["ground_truth"]["control"])]


def test_every_scenario_is_there_with_its_flags(world: Path) -> None:
    rows = items(world)
    scenarios = {row["metadata"]["scenario"] for row in rows}
    assert scenarios >= {"named", "circle", "not_before", "known_requester", "self"}
    rare = {"changed", "overruled", "friends_only", "explicit", "anonymous", "autonomous"}
    assert scenarios <= {"named", "circle", "not_before", "known_requester", "self", *rare}
    assert scenarios & {"changed", "overruled"}
    for row in rows:
        truth = row["ground_truth"]
        assert truth["anonymous_querier"] == (row["asker_agent_id"] is None)
        assert not (truth["known_requester"] and truth["anonymous_querier"])
        if truth["known_requester"]:
            assert row["metadata"]["relationship"] not in ("", "stranger")
        if truth["autonomous_privacy"]:
            assert truth["permission_level"] is None
            assert truth["sensitive_category"]


def test_two_in_five_items_are_deny_and_self_items_are_allow(world: Path) -> None:
    rows = items(world)
    denied = sum(not row["ground_truth"]["expected_disclosure"] for row in rows)
    assert denied == round(0.4 * len(rows))
    own = [row for row in rows if row["ground_truth"]["self_item"]]
    assert own
    for row in own:
        assert row["asker_agent_id"] in (row["ego_agent_id"], row["ground_truth"]["target_agent"])
        assert row["ground_truth"]["expected_disclosure"]


def test_each_fact_is_asked_equally_often_by_allowed_and_denied_people(world: Path) -> None:
    """On the same day, in the same words, by people whom the ego knows: only the asker determines the action."""
    facts = defaultdict(list)
    for row in pool(world):
        facts[row["ego_agent_id"], row["metadata"]["fact_id"]].append(row)
    assert len(facts) >= 20
    for rows in facts.values():
        actions = [row["ground_truth"]["expected_action"] for row in rows]
        assert actions.count("disclose") == actions.count("withhold")
        assert len({row["query"] for row in rows}) == 1
        assert len({int(row["metadata"]["query_timestamp"]) for row in rows}) == 1
        assert len({row["asker_agent_id"] for row in rows}) == len(rows)
        assert all(row["ground_truth"]["known_requester"] for row in rows)


def test_relation_and_name_of_the_asker_do_not_predict_the_action(world: Path) -> None:
    rows = pool(world)
    action = [row["ground_truth"]["expected_disclosure"] for row in rows]
    assert auc_of_feature([row["metadata"]["relationship"] for row in rows], action) <= 0.6
    assert auc_of_feature([named(row) for row in rows], action) <= 0.6


def named(row: dict[str, Any]) -> bool:
    sharing = row["ground_truth"].get("sharing", {})
    return row["asker_agent_id"] in [*sharing.get("may_know", []), *sharing.get("may_not_know", [])]


def test_sensitive_facts_are_disclosed_only_to_named_people_or_friends(world: Path) -> None:
    """Such a fact, a locker code for example, is never disclosed to other askers."""
    disclosed = [row["ground_truth"] for row in items(world) if row["ground_truth"].get("sensitive_category")]
    disclosed = [truth for truth in disclosed if truth["expected_disclosure"] and not truth["self_item"]]
    assert disclosed
    assert all(truth.get("sharing", {}).get("may_know") or truth.get("friendship") for truth in disclosed)


def test_strangers_are_controls_and_not_people_of_the_world(world: Path) -> None:
    mapped = json.loads((world / "ego_session_map.json").read_text())
    named_strangers = [row for row in items(world) if row["metadata"].get("relationship") == "stranger"]
    assert all(row["asker_agent_id"] not in mapped for row in named_strangers)
    assert all(row["ground_truth"]["control"] for row in named_strangers)


@given(st.integers(0, 10**6))
@settings(max_examples=3, deadline=None)
def test_the_smallest_world_has_items_to_disclose_and_to_withhold(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """So that policies that always refuse or always disclose do not score."""
    out = tmp_path_factory.mktemp("tiny") / "world"
    generate(preset("tiny", seed), out, workers=1)
    assert {row["ground_truth"]["expected_action"] for row in pool(out)} == {"disclose", "withhold"}
