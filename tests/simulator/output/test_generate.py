"""Tests output/generate.py: data sets are valid, deterministic and resumable, and evidence has the stated facts."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_dataset.validate import Profile, validate
from memarena_masim.config import WorldConfig, preset
from memarena_masim.errors import MasimError
from memarena_masim.output.generate import PARTS, generate

from ...support.small_worlds import WorldOf


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of each file that depends on the seed alone, by relative path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "run_info.json"
    }


def test_full_profile_finds_no_error(small_world: Path, tiny_world: Path) -> None:
    """``validate`` with the full profile accepts the small worlds of the tests."""
    for world in (small_world, tiny_world):
        report = validate(world, Profile.FULL)
        assert [str(finding.problem) for finding in report.errors] == []


def test_every_family_has_questions(small_world: Path) -> None:
    """The nine families and witness pairs."""
    report = json.loads((small_world / "pipeline_report.json").read_text())
    assert len(report["instances"]) == 10
    assert all(count > 0 for count in report["instances"].values())


def test_the_smallest_preset_asks_of_every_family(world_of: WorldOf) -> None:
    """Over eight seeds: each of the nine families in all worlds except for at most one, witness pairs in most."""
    worlds = [world_of(preset("tiny", seed)) for seed in range(111, 119)]
    counts = [json.loads((world / "pipeline_report.json").read_text())["instances"] for world in worlds]
    nine = [family.value for family in Family if family is not Family.WITNESS]
    assert all(sum(world_counts[name] > 0 for world_counts in counts) >= len(counts) - 1 for name in nine)
    assert sum(world_counts[Family.WITNESS.value] > 0 for world_counts in counts) >= 5


def test_groups_say_when_they_meet(small_world: Path) -> None:
    """Weekday (0 is Monday) and hour; at that time, the schedules of members have a meeting."""
    groups = json.loads((small_world / "groups.json").read_text())
    epoch = date.fromisoformat(json.loads((small_world / "pipeline_report.json").read_text())["calendar_epoch"])
    assert {group["kind"] for group in groups if group["meets"] is None} == {"family", "team"}
    timed = [(group["location_id"], group["meets"]) for group in groups if group["meets"] is not None]
    meetings = [
        (slot["location_id"], (epoch + timedelta(days=row["day_index"])).weekday(), slot["start_hour"])
        for row in rows(small_world / "agent_schedules.jsonl")
        for slot in row["slots"]
        if slot["activity"] == "meeting"
    ]
    assert meetings
    for location_id, weekday, hour in meetings:
        there = [meets["hour"] for where, meets in timed if where == location_id and meets["weekday"] == weekday]
        assert any(begins <= hour < begins + 1.5 for begins in there)


def test_projection_is_participation_and_visible_events(small_world: Path) -> None:
    """The written map of sessions is the one that the data set's reader computes."""
    mapped = json.loads((small_world / "ego_session_map.json").read_text())
    with open_dataset(small_world) as dataset:
        for ego in dataset.egos:
            session_ids = [
                session.session_id for day in range(dataset.day_count) for session in dataset.day_sessions(ego, day)
            ]
            assert sorted(session_ids) == sorted(mapped[ego])


def test_same_bytes_for_one_and_two_workers(small_config: WorldConfig, small_world: Path, tmp_path: Path) -> None:
    """The words of a session do not depend on the process that writes it."""
    generate(small_config, tmp_path / "two", workers=2)
    assert contents(tmp_path / "two") == contents(small_world)


def _forever(config: WorldConfig, out: Path) -> None:
    generate(config, out, workers=1, progress=lambda _: time.sleep(0.4))


def test_same_bytes_after_a_kill_and_a_resume(small_config: WorldConfig, small_world: Path, tmp_path: Path) -> None:
    """A generation killed after its first days resumes where it stopped."""
    out = tmp_path / "killed"
    child = multiprocessing.get_context("spawn").Process(target=_forever, args=(small_config, out))
    child.start()
    deadline = time.monotonic() + 600  # a machine may be busy
    while not (out / PARTS / "day_0001.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    modified_ns = (out / PARTS / "day_0000.jsonl").stat().st_mtime_ns
    assert not (out / "corpus_sessions.jsonl").exists()
    times: list[int] = []
    generate(small_config, out, workers=1, progress=lambda _: times.append(_mtime(out)))
    assert times[0] == modified_ns
    assert contents(out) == contents(small_world)


def _mtime(out: Path) -> int:
    return (out / PARTS / "day_0000.jsonl").stat().st_mtime_ns


def test_another_configuration_does_not_resume(small_config: WorldConfig, tmp_path: Path) -> None:
    """An unfinished data set of another seed is not mixed with this one."""
    (tmp_path / PARTS).mkdir()
    (tmp_path / PARTS / "configuration.json").write_text("{}")
    with pytest.raises(MasimError, match="another configuration"):
        generate(small_config, tmp_path)


def test_nothing_is_overwritten(tiny_world: Path) -> None:
    """A folder that is not empty is refused."""
    with pytest.raises(MasimError, match="not empty"):
        generate(preset("tiny", 102), tiny_world)


def test_every_statement_is_in_its_turn(small_world: Path) -> None:
    """The turn that facts.jsonl names has the statement's value, and the speaker that it names."""
    turns = {
        turn["turn_id"]: turn for session in rows(small_world / "corpus_sessions.jsonl") for turn in session["turns"]
    }
    for fact in rows(small_world / "facts.jsonl"):
        turn = turns[fact["turn_id"]]
        assert turn["speaker_id"] == fact["speaker_id"]
        value = fact["value"]
        if value["type"] in ("term", "place") and fact["role"] != "fate" and not fact["attribute"].startswith("tie"):
            assert (value.get("text") or value.get("name")).casefold() in turn["text"].casefold()


def test_a_fate_does_not_name_its_thing(small_world: Path) -> None:
    """So the reference can be resolved only by the earlier session."""
    turns = {
        turn["turn_id"]: turn for session in rows(small_world / "corpus_sessions.jsonl") for turn in session["turns"]
    }
    fates = [fact for fact in rows(small_world / "facts.jsonl") if fact["role"] == "fate"]
    assert fates
    for fact in fates:
        assert fact["value"]["text"] not in turns[fact["turn_id"]]["text"].casefold()


def test_witness_pairs_ask_the_same_of_one_who_knows_and_one_who_does_not(small_world: Path) -> None:
    """The same words for two egos, one of whom has to abstain."""
    by_query: dict[str, list[dict[str, Any]]] = {}
    for row in rows(small_world / "eval_instances" / "x1_witness.jsonl"):
        by_query.setdefault(row["query"], []).append(row)
    for pair in by_query.values():
        assert sorted(row["ground_truth"]["expected_response"] for row in pair) == ["abstain", "answer"]
        assert len({row["ego_agent_id"] for row in pair}) == 2


def test_half_of_the_abstention_questions_have_an_answer(small_world: Path) -> None:
    """Within one question."""
    kinds = [
        row["ground_truth"]["expected_response"]
        for row in rows(small_world / "eval_instances" / "d3_confabulation.jsonl")
    ]
    assert abs(kinds.count("abstain") - kinds.count("answer")) <= 1


def test_permission_keeps_three_allow_to_two_deny(small_world: Path) -> None:
    """Two in five are DENY, as nearly as the number of items lets them."""
    actions = [
        row["ground_truth"]["expected_action"] for row in rows(small_world / "eval_instances" / "d4_permission.jsonl")
    ]
    assert abs(actions.count("withhold") - 0.4 * len(actions)) <= 1


def test_several_worlds_of_a_seed_differ(tmp_path: Path) -> None:
    """``--worlds`` makes independent ones."""
    for world in (0, 1):
        generate(preset("tiny", 102, world), tmp_path / str(world))
    digest, other_digest = (contents(tmp_path / str(world))["corpus_sessions.jsonl"] for world in (0, 1))
    assert digest != other_digest
