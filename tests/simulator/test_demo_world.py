"""Tests the demonstration's world: it is generated on the spot, has all nine families, and is the same every time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from memarena.cli.demo_questions import SAMPLE, demo_questions
from memarena.cli.demo_world import PEOPLE, make_world
from memarena.execution.errors import RunError
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_dataset.validate import Profile, validate


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The world that the demonstration makes."""
    out = tmp_path_factory.mktemp("demo") / "world"
    make_world(out)
    return out


def test_the_world_is_valid_has_every_family_and_leaves_no_log_behind(world: Path) -> None:
    assert [str(finding.problem) for finding in validate(world, Profile.FULL).errors] == []
    assert [path.name for path in world.parent.iterdir()] == ["world"]
    with open_dataset(world) as dataset:
        families = Counter(one.family for one in dataset.instances)
        assert PEOPLE - 2 <= len(dataset.egos) <= PEOPLE  # some may be asked nothing
    assert all(families[family] >= 8 for family in Family if family is not Family.WITNESS)


def test_everything_is_asked_and_a_sample_of_one_person(world: Path) -> None:
    with open_dataset(world) as dataset:
        chosen = demo_questions(dataset)
        assert chosen == demo_questions(dataset)
        by_id = {one.instance_id: one for one in dataset.instances}
        witness = {name for name, one in by_id.items() if one.family is Family.WITNESS}
        assert set(chosen.everything) == set(by_id) - witness
        [person] = {by_id[name].ego_agent_id for name in chosen.one_person}
        assert set(chosen.one_person) == {n for n in chosen.everything if by_id[n].ego_agent_id == person}
        assert len(set(chosen.sample)) == SAMPLE
        assert set(chosen.sample) <= set(chosen.one_person)
        families = [by_id[name].family for name in chosen.sample]
        assert len(set(families)) == len({by_id[name].family for name in chosen.one_person})
        sizes = Counter(by_id[name].ego_agent_id for name in chosen.everything)
        heard = {
            ego: sum(len(t.text) for day in range(dataset.day_count) for s in dataset.day_sessions(ego, day)
                     for t in s.turns)
            for ego, count in sizes.items() if count >= SAMPLE
        }  # fmt: skip
    assert heard[person] == min(heard.values())


def test_a_data_set_in_which_nobody_has_enough_questions_is_refused(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memarena.cli.demo_questions.SAMPLE", 1000)
    with open_dataset(world) as dataset, pytest.raises(RunError, match="needs a person with 1000 questions"):
        demo_questions(dataset)


def test_a_missing_simulator_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the harness is installed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(RunError, match="masim"):
        make_world(tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_a_simulator_that_fails_says_why(world: Path) -> None:
    """Its own line is passed on; nothing is overwritten."""
    with pytest.raises(RunError, match=r"masim generate failed: error: --out .* not empty"):
        make_world(world)
