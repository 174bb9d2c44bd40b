"""Tests questions/derive.py on a generated world: lags and interference spread, golds are complete, pairs match."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_dataset.model import Family
from memarena_masim.config import RELEASED_COUNTS, WorldConfig, preset
from memarena_masim.output.generate import generate
from memarena_masim.plan.popularity import interference_class
from memarena_masim.questions.lags import LagDrawer, lag_bucket
from memarena_masim.rng import Stream


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world of twelve people and nine days with enough questions for every family."""
    out = tmp_path_factory.mktemp("families") / "world"
    generate(WorldConfig(agents=12, days=9, density=0.5, question_share=2.5, seed=23), out, workers=1)
    return out


def asked(world: Path, family: Family) -> list[dict[str, Any]]:
    path = world / "eval_instances" / f"{family.value}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def stated(world: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (world / "facts.jsonl").read_text(encoding="utf-8").splitlines()]


def test_preset_l_asks_what_the_released_set_asks() -> None:
    """1,579 questions with the released counts per family, not counting witness pairs."""
    config = preset("l", 42)
    assert {family: config.questions(family) for family in RELEASED_COUNTS} == RELEASED_COUNTS
    assert sum(RELEASED_COUNTS.values()) == 1579


@given(st.integers(2, 20), st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=60))
@settings(max_examples=40, deadline=None)
def test_a_question_comes_after_its_evidence_and_within_the_world(days: int, pairs: list[tuple[int, int]]) -> None:
    """Never before its last evidence, its earliest day or after the world's last day."""
    drawer = LagDrawer(days)
    for number, pair in enumerate(pairs):
        last, earliest = (min(day, days - 1) for day in pair)
        day = drawer.day(Stream("lag", number), Family.QA, last, earliest)
        assert max(last, earliest) <= day < days


def test_lags_spread_over_all_buckets_that_a_world_has_room_for() -> None:
    """Buckets are filled evenly, although only early evidence allows long lags."""
    drawer, counts = LagDrawer(15), Counter[tuple[int, int]]()
    for number in range(400):
        last = Stream("evidence", number).below(15)
        counts[lag_bucket(drawer.day(Stream("day", number), Family.QA, last, last) - last)] += 1
    assert set(counts) == {(0, 0), (1, 3), (4, 7), (8, 14)}
    assert min(counts.values()) > 60


@pytest.mark.parametrize(("near_duplicates", "aim"), [(0, 0), (1, 1), (2, 1), (3, 4), (8, 4), (9, 16), (40, 16)])
def test_interference_falls_in_the_class_that_it_is_nearest_to(near_duplicates: int, aim: int) -> None:
    assert interference_class(near_duplicates) == aim


def test_questions_about_details_cover_the_classes_of_near_duplicates(world: Path) -> None:
    """Classes 0, 1 and 4 have questions, and none more than three times as many as another."""
    rows = asked(world, Family.QA) + asked(world, Family.CLOZE) + asked(world, Family.COUNTERFACTUAL)
    classes = Counter(interference_class(row["metadata"]["interference"]) for row in rows)
    assert set(classes) >= {0, 1, 4}
    assert max(classes[aim] for aim in (0, 1, 4)) <= 3 * min(classes[aim] for aim in (0, 1, 4))


def test_any_statement_of_each_fact_suffices_and_every_fact_is_needed(world: Path) -> None:
    """Compares groups of sufficient turns with facts.jsonl; questions with nothing to retrieve have no group."""
    values: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for fact in stated(world):
        values[fact["turn_id"]].add((fact["fact_id"], json.dumps(fact["value"], sort_keys=True)))
    restated = 0
    for family in Family:
        for row in asked(world, family):
            truth, metadata = row["ground_truth"], row["metadata"]
            groups = metadata.get("sufficient_turn_ids", [])
            nothing = truth.get("expected_response") == "abstain" or truth.get("expected_action") == "withhold"
            assert bool(groups) is not nothing, row["instance_id"]
            assert {turn for group in groups for turn in group} <= set(metadata["evidence_turn_ids"])
            for group in groups:
                assert set.intersection(*(values[turn] for turn in group)), "a group states one fact with one value"
                restated += len(group) > 1
            if family is Family.CONFLICT:
                assert len(groups) == 2
            if truth.get("temporal_type") == "ordering":
                assert len(groups) == len(truth["values"][0]["items"])
    assert restated > 20


def test_interference_counts_near_duplicates_in_the_ego_s_sessions(world: Path) -> None:
    """These are statements of the same attribute and item, without those of the fact itself."""
    mapped = json.loads((world / "ego_session_map.json").read_text())
    facts = stated(world)
    by_id = {fact["fact_id"]: fact for fact in facts}
    for row in asked(world, Family.QA):
        own, fact = set(mapped[row["ego_agent_id"]]), by_id[row["metadata"]["fact_id"]]
        near = [
            candidate for candidate in facts
            if candidate["session_id"] in own and candidate["attribute"] == fact["attribute"]
            and candidate["fact_id"].removesuffix("_v") != fact["fact_id"]
        ]  # fmt: skip
        assert row["metadata"]["interference"] == len(near)


def test_changed_details_are_asked_for_their_current_and_earlier_value(world: Path) -> None:
    """The evidence has both values; the later statement names the fact that it replaces, and is the last."""
    rows = [row for row in asked(world, Family.QA) if "validity" in row["ground_truth"]]
    assert {row["ground_truth"]["validity"] for row in rows} == {"current", "earlier"}
    facts = defaultdict(list)
    for fact in stated(world):
        facts[fact["fact_id"]].append(fact)
    for row in rows:
        (later,) = facts[row["metadata"]["fact_id"]]
        earlier = facts[later["supersedes"]]
        now = row["ground_truth"]["validity"] == "current"
        assert row["ground_truth"]["values"] == [(later if now else earlier[0])["value"]]
        assert {later["session_id"], *row["evidence_session_ids"]} == set(row["evidence_session_ids"])
        assert later["speaker_id"] == later["subject"]


def test_metadata_questions_cover_sessions_and_the_community(world: Path) -> None:
    """Speaker, participants, date, medium and place of a session; homes, workplaces, groups."""
    attributes = {row["ground_truth"]["attribute"] for row in asked(world, Family.METADATA)}
    assert len(attributes) >= 9
    assert {"speaker", "session", "context", "home_location", "work_location"} <= attributes
    assert len(attributes & {"group_membership", "group_role", "group_meeting_place", "group_members"}) > 1


def test_a_membership_question_has_every_club_of_the_person_as_gold(world: Path) -> None:
    """So no right answer counts as wrong."""
    groups = [group for group in json.loads((world / "groups.json").read_text()) if group["kind"] == "club"]
    subjects = {fact["fact_id"]: fact["subject"] for fact in stated(world)}
    rows = [row for row in asked(world, Family.METADATA) if row["ground_truth"]["attribute"] == "group_membership"]
    assert rows
    for row in rows:
        subject = subjects[row["metadata"]["fact_id"]]
        value = row["ground_truth"]["value"]
        clubs = {group["name"] for group in groups if subject in group["members"]}
        assert set(value if isinstance(value, list) else [value]) == clubs


def test_temporal_questions_are_of_three_kinds_and_order_five_things(world: Path) -> None:
    rows = asked(world, Family.TEMPORAL)
    kinds = Counter(row["ground_truth"]["temporal_type"] for row in rows)
    assert set(kinds) == {"ordering", "anchoring", "interval"}
    for row in rows:
        if row["ground_truth"]["temporal_type"] == "ordering":
            assert len(row["ground_truth"]["values"][0]["items"]) == 5


def test_abstain_and_answer_halves_ask_about_the_same_items(world: Path) -> None:
    """So an item does not tell which half a question is of."""
    things: dict[str, Counter[str]] = {"abstain": Counter(), "answer": Counter()}
    by_id = {fact["fact_id"]: fact for fact in stated(world)}
    for row in asked(world, Family.CONFABULATION):
        truth = row["ground_truth"]
        if truth["expected_response"] == "abstain":
            things["abstain"][truth["claim"][1]["text"]] += 1
        else:
            things["answer"][by_id[row["metadata"]["fact_id"]]["attribute"].split(": ", 1)[1]] += 1
    spare = things["answer"] - things["abstain"]
    assert not things["abstain"] - things["answer"]
    assert sum(spare.values()) <= 1


def test_a_conflict_is_asked_once_per_ego(world: Path) -> None:
    rows = asked(world, Family.CONFLICT)
    assert len({(row["ego_agent_id"], row["metadata"]["fact_id"]) for row in rows}) == len(rows)


def test_options_are_alike_in_length_and_form(world: Path) -> None:
    """No option is more than twice or less than half as long as the right one; all or none have digits."""
    for row in asked(world, Family.CLOZE):
        options, right = row["ground_truth"]["options"], row["ground_truth"]["blank_word"]
        assert all(len(right) / 2 <= len(option) <= 2 * len(right) for option in options)
        assert len({any(char.isdigit() for char in option) for option in options}) == 1


def test_where_questions_are_short_every_version_that_somebody_heard_is_asked_about(tmp_path: Path) -> None:
    """Its speaker is present as well, and cannot be asked."""
    config = preset("tiny", 3).model_copy(update={"question_share": 6.0})
    generate(config, tmp_path / "w", workers=1)
    versions = [row for row in stated(tmp_path / "w") if row["role"] == "version"]
    questions = asked(tmp_path / "w", Family.CONFLICT)
    assert 5 < len(versions) < config.questions(Family.CONFLICT)
    assert len(questions) == len(versions)


@pytest.mark.parametrize("seed", [110, 111])
def test_agents_without_a_session_get_no_questions(seed: int, tmp_path: Path) -> None:
    """In a world of a few sessions some agents are in none."""
    config = WorldConfig(name="test", agents=4, days=2, density=0.02, question_share=1.0, seed=seed)
    generate(config, tmp_path / "w")
    sessions = [json.loads(line) for line in (tmp_path / "w" / "corpus_sessions.jsonl").read_text().splitlines()]
    speaking = {agent for session in sessions for agent in session["participants"]}
    for path in (tmp_path / "w" / "eval_instances").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            assert json.loads(line)["ego_agent_id"] in speaking
