"""Permission questions as laws: each fact for both, balanced, in the same words, even in the smallest worlds."""

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
    """Enough people and questions for a pool of some hundred."""
    out = tmp_path_factory.mktemp("permission") / "world"
    generate(WorldConfig(agents=20, days=7, density=0.5, question_share=2.6, seed=111), out, workers=1)
    return out


def items(world: Path) -> list[dict[str, Any]]:
    path = world / "eval_instances" / "d4_permission.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pool(world: Path) -> list[dict[str, Any]]:
    """What counts for F1_PU."""
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


def test_two_in_five_are_deny_and_self_items_stand_apart(world: Path) -> None:
    rows = items(world)
    denied = sum(not row["ground_truth"]["expected_disclosure"] for row in rows)
    assert denied == round(0.4 * len(rows))
    own = [row for row in rows if row["ground_truth"]["self_item"]]
    assert own
    for row in own:
        assert row["asker_agent_id"] in (row["ego_agent_id"], row["ground_truth"]["target_agent"])
        assert row["ground_truth"]["expected_disclosure"]


def test_each_fact_is_asked_as_often_by_who_may_know_as_by_who_may_not(world: Path) -> None:
    """On the same day and in the same words, by somebody whom the ego knows: nothing but who asks tells the action."""
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


def test_who_asks_is_balanced(world: Path) -> None:
    rows = pool(world)
    action = [row["ground_truth"]["expected_disclosure"] for row in rows]
    assert auc_of_feature([row["metadata"]["relationship"] for row in rows], action) <= 0.6
    assert auc_of_feature([named(row) for row in rows], action) <= 0.6


def named(row: dict[str, Any]) -> bool:
    sharing = row["ground_truth"].get("sharing", {})
    return row["asker_agent_id"] in [*sharing.get("may_know", []), *sharing.get("may_not_know", [])]


def test_what_is_sensitive_is_told_to_nobody_who_is_not_let_know(world: Path) -> None:
    """A locker code goes to people that a wish names, or to friends, never to whoever else asks."""
    told = [row["ground_truth"] for row in items(world) if row["ground_truth"].get("sensitive_category")]
    told = [truth for truth in told if truth["expected_disclosure"] and not truth["self_item"]]
    assert told
    assert all(truth.get("sharing", {}).get("may_know") or truth.get("friendship") for truth in told)


def test_strangers_are_controls_and_nobody_of_the_world(world: Path) -> None:
    mapped = json.loads((world / "ego_session_map.json").read_text())
    named_strangers = [row for row in items(world) if row["metadata"].get("relationship") == "stranger"]
    assert all(row["asker_agent_id"] not in mapped for row in named_strangers)
    assert all(row["ground_truth"]["control"] for row in named_strangers)


@given(st.integers(0, 10**6))
@settings(max_examples=3, deadline=None)
def test_the_smallest_world_has_something_to_tell_and_something_to_keep(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """So that always refusing, always disclosing and never knowing all come to nothing."""
    out = tmp_path_factory.mktemp("tiny") / "world"
    generate(preset("tiny", seed), out, workers=1)
    assert {row["ground_truth"]["expected_action"] for row in pool(out)} == {"disclose", "withhold"}
