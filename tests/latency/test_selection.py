"""Tests the selection of a study's queries: the latest of each family, from the egos with the most usable ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.execution.planning.questions import plan_questions
from memarena.latency.errors import LatencyError
from memarena.latency.selection import FAMILIES, choose_egos, query_time, select_queries, write_selection
from memarena.latency.study import read_queries
from memarena_dataset.io.reading import Dataset, open_dataset
from memarena_dataset.model import Family, Instance
from typer.testing import CliRunner

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


@pytest.fixture(scope="module")
def dataset() -> Iterator[Dataset]:
    with open_dataset(EXAMPLE) as opened:
        yield opened


def test_no_omitted_query_is_later_than_a_selected_one_of_its_family(dataset: Dataset) -> None:
    selection = select_queries(dataset, egos=3, per_family=2)
    questions = {q.instance.instance_id: q for q in plan_questions(dataset, dataset.instances, "interleaved", 0)}
    selected = set(selection.instance_ids)
    for family in FAMILIES:
        of_family = [q for q in questions.values() if q.instance.family is family]
        inside = [query_time(dataset, q) for q in of_family if q.instance.instance_id in selected]
        outside = [query_time(dataset, q) for q in of_family if q.instance.instance_id not in selected]
        assert len(inside) == min(2, len(of_family)) == selection.families[family.value]
        assert not outside or min(inside) >= max(outside)


def test_the_nine_families_of_the_paper_and_no_other() -> None:
    assert len(FAMILIES) == 9
    assert all(family.value.startswith("d") for family in FAMILIES)


def test_the_same_data_set_gives_the_same_list(dataset: Dataset) -> None:
    assert select_queries(dataset, egos=2).text() == select_queries(dataset, egos=2).text()


def test_queries_are_from_the_chosen_egos_only(dataset: Dataset) -> None:
    selection = select_queries(dataset, egos=1)
    assert len(selection.egos) == 1
    by_id = {i.instance_id: i for i in dataset.instances}
    assert {by_id[i].ego_agent_id for i in selection.instance_ids} == set(selection.egos)


def test_the_first_ego_has_the_most_usable_queries(dataset: Dataset) -> None:
    def brought(ego: str) -> int:
        counts = Counter(i.family for i in dataset.instances if i.ego_agent_id == ego)
        return sum(min(2, counts[family]) for family in FAMILIES)

    (first,) = choose_egos(dataset.instances, 1, 2)
    assert brought(first) == max(brought(ego) for ego in dataset.egos)


def test_an_ego_with_many_families_precedes_one_with_many_questions(dataset: Dataset) -> None:
    """At two queries per family, nine questions of one family give two queries, one of each of three families three."""
    example = dataset.instances[0]

    def asked(ego: str, family: Family, count: int) -> list[Instance]:
        return [example.model_copy(update={"ego_agent_id": ego, "family": family}) for _ in range(count)]

    many = asked("many", Family.CLOZE, 9)
    varied = [i for family in (Family.CLOZE, Family.QA, Family.TEMPORAL) for i in asked("varied", family, 1)]
    assert choose_egos([*many, *varied], 1, 2) == {"varied"}


def test_families_that_lack_queries_are_named(dataset: Dataset) -> None:
    assert set(select_queries(dataset, egos=3, per_family=1000).short()) == {family.value for family in FAMILIES}


def test_the_list_is_a_file_that_is_never_overwritten(dataset: Dataset, tmp_path: Path) -> None:
    selection = select_queries(dataset, egos=3)
    write_selection(selection, tmp_path / "q.txt")
    assert read_queries(tmp_path / "q.txt") == selection.instance_ids
    with pytest.raises(LatencyError, match=r"q\.txt"):
        write_selection(selection, tmp_path / "q.txt")


def test_more_egos_than_the_data_set_has_gives_a_one_line_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["latency", "select", "--dataset", str(EXAMPLE), "--egos", "99", "--out", str(tmp_path / "q")]
    )
    assert isinstance(result.exception, LatencyError)
    assert "--egos 99" in str(result.exception)
