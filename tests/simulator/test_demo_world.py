"""The demonstration's world: made on the spot, all nine families in it, the same eighteen questions every time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from memarena.cli.demo_questions import FAMILIES, choose_questions
from memarena.cli.demo_world import make_world
from memarena.execution.errors import RunError
from memarena_dataset.gold import AbstainGold, PermissionGold
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_dataset.validate import Profile, validate

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The world that the demonstration makes."""
    out = tmp_path_factory.mktemp("demo") / "demo-world"
    make_world(out)
    return out


def check(folder: Path) -> tuple[str, ...]:
    """Two questions of each of the nine families, each half of the halved ones, of at most three people."""
    with open_dataset(folder) as dataset:
        chosen = choose_questions(dataset.instances)
        by_id = {instance.instance_id: instance for instance in dataset.instances}
    asked = [by_id[name] for name in chosen]
    assert len(set(chosen)) == 18
    assert Counter(one.family for one in asked) == dict.fromkeys(FAMILIES, 2)
    abstains = [isinstance(one.gold, AbstainGold) for one in asked if one.family is Family.CONFABULATION]
    actions = [one.gold.expected_action for one in asked if isinstance(one.gold, PermissionGold)]
    assert sorted(abstains) == [False, True]
    assert sorted(actions) == ["disclose", "withhold"]
    assert len({one.ego_agent_id for one in asked}) <= 3
    return chosen


def test_the_demo_asks_two_questions_of_each_family(world: Path) -> None:
    """Of the world that is made on the spot, which is valid and leaves no log behind."""
    check(world)
    assert [str(finding.problem) for finding in validate(world, Profile.FULL).errors] == []
    assert [path.name for path in world.parent.iterdir()] == ["demo-world"]


def test_the_same_questions_every_time(world: Path) -> None:
    """The order of the files does not matter."""
    with open_dataset(world) as dataset:
        assert choose_questions(dataset.instances) == choose_questions(dataset.instances) == check(world)


def test_another_seed_and_the_example_have_them_too(tmp_path: Path) -> None:
    """The choice does not hang on one lucky seed."""
    check(EXAMPLE)
    make_world(tmp_path / "w", 1)
    check(tmp_path / "w")


def test_a_family_that_is_missing_is_one_line(world: Path) -> None:
    """Not seventeen questions, and not the same one twice."""
    with open_dataset(world) as dataset:
        fewer = [one for one in dataset.instances if one.family is not Family.CONFLICT]
        with pytest.raises(RunError, match="of d1_conflict there are too few"):
            choose_questions(fewer)


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
