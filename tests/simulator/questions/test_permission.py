"""Permission questions as laws: crossed, balanced, undecided by time, with both actions even in the smallest worlds."""

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
    generate(WorldConfig(agents=20, days=7, density=0.5, question_share=2.6, seed=110), out, workers=1)
    return out


def items(world: Path) -> list[dict[str, Any]]:
    path = world / "eval_instances" / "d4_permission.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pool(world: Path) -> list[dict[str, Any]]:
    return [row for row in items(world) if not row["ground_truth"]["self_item"]]


def test_every_scenario_is_there_with_its_flags(world: Path) -> None:
    rows = items(world)
    scenarios = {row["metadata"]["scenario"] for row in rows}
    assert scenarios == {"explicit", "friends_only", "known_requester", "anonymous", "autonomous", "self"}
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


def test_items_come_crossed(world: Path) -> None:
    """The same fact for two who differ in right, or the same asker after two facts that do; both kinds are there."""
    rows = pool(world)
    facts, askers = defaultdict(set), defaultdict(set)
    for row in rows:
        action = row["ground_truth"]["expected_action"]
        facts[row["ego_agent_id"], row["metadata"]["fact_id"]].add(action)
        askers[row["ego_agent_id"], row["asker_agent_id"]].add(action)
    by_fact = [len(facts[row["ego_agent_id"], row["metadata"]["fact_id"]]) == 2 for row in rows]
    by_asker = [len(askers[row["ego_agent_id"], row["asker_agent_id"]]) == 2 for row in rows]
    assert sum(one or other for one, other in zip(by_fact, by_asker, strict=True)) >= 0.85 * len(rows)
    assert sum(by_fact) >= 0.1 * len(rows)
    assert sum(by_asker) >= 0.5 * len(rows)


def test_neither_asker_nor_relation_nor_category_tells_the_action(world: Path) -> None:
    rows = pool(world)
    action = [row["ground_truth"]["expected_disclosure"] for row in rows]
    kinds = [(row["asker_agent_id"] is None, row["metadata"].get("relationship") == "stranger") for row in rows]
    assert auc_of_feature(kinds, action) <= 0.55
    # Of so few items it scatters by some hundredths; `validate` counts what is above 0.55 for sure.
    assert auc_of_feature([row["ground_truth"].get("sensitive_category") for row in rows], action) <= 0.58


def test_named_strangers_are_nobody_of_the_world(world: Path) -> None:
    """They have a name of their own and no part in any session."""
    mapped = json.loads((world / "ego_session_map.json").read_text())
    named = [row for row in pool(world) if row["metadata"].get("relationship") == "stranger"]
    assert named
    assert all(row["asker_agent_id"] not in mapped for row in named)


@given(st.integers(0, 10**6))
@settings(max_examples=3, deadline=None)
def test_the_smallest_world_has_something_to_tell_and_something_to_keep(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """So that always refusing, always disclosing and never knowing all come to nothing."""
    out = tmp_path_factory.mktemp("tiny") / "world"
    generate(preset("tiny", seed), out, workers=1)
    assert {row["ground_truth"]["expected_action"] for row in pool(out)} == {"disclose", "withhold"}
