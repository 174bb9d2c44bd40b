"""Tests the schedule of questions: their text, day and order do not depend on gold, family or id.

Otherwise a backend could guess from text, day or order which kind of answer is right.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.execution.backends.manifests import choose_backend
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.plan import plan_run
from memarena.execution.planning.questions import plan_questions, question_day, sample_questions
from memarena.log.records import ReaderRef
from memarena_dataset.gold import TextGold
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family, Instance

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def qa(timestamp: float | None) -> Instance:
    gold = TextGold(answers=("x",))
    return Instance(
        instance_id="i", family=Family.QA, query="What?", gold=gold, ego_agent_id="e", query_timestamp=timestamp
    )


@pytest.mark.parametrize(
    ("timestamp", "protocol", "day"),
    [
        (None, "interleaved", 9),
        (3.5, "interleaved", 3),
        (3.0, "interleaved", 3),
        (99.0, "interleaved", 9),
        (3.5, "end_of_horizon", 9),
    ],
)
def test_a_question_belongs_to_the_day_of_its_timestamp_or_to_the_last(
    timestamp: float | None, protocol: str, day: int
) -> None:
    assert question_day(qa(timestamp), 10, protocol) == day  # type: ignore[arg-type]


def test_questions_are_asked_as_of_the_following_midnight() -> None:
    with open_dataset(EXAMPLE) as data:
        for question in plan_questions(data, data.instances, "interleaved", 0):
            assert question.asked_at.endswith("T00:00:00Z")
            assert question.asked_at == data.moment(question.day + 1).strftime("%Y-%m-%dT%H:%M:%SZ")


@given(st.integers(), st.randoms(use_true_random=False))
def test_the_order_of_rows_in_the_files_does_not_matter(seed: int, random: object) -> None:
    with open_dataset(EXAMPLE) as data:
        instances = list(data.instances)
        expected = [q.instance.instance_id for q in plan_questions(data, instances, "interleaved", seed)]
        random.shuffle(instances)  # type: ignore[attr-defined]
        assert [q.instance.instance_id for q in plan_questions(data, instances, "interleaved", seed)] == expected


def test_another_seed_gives_another_order_of_the_same_questions() -> None:
    with open_dataset(EXAMPLE) as data:
        orders = [
            [q.instance.instance_id for q in plan_questions(data, data.instances, "end_of_horizon", s)] for s in (0, 1)
        ]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_a_sample_is_seeded_and_keeps_the_order() -> None:
    with open_dataset(EXAMPLE) as data:
        questions = plan_questions(data, data.instances, "interleaved", 0)
    sample = sample_questions(questions, 7, 0)
    assert len(sample) == 7
    assert sample == [q for q in questions if q in sample]
    assert sample == sample_questions(questions, 7, 0)
    assert sample != sample_questions(questions, 7, 1)


def test_askers_are_owner_known_person_or_anonymous() -> None:
    with open_dataset(EXAMPLE) as data:
        questions = plan_questions(data, data.instances, "interleaved", 0)
    kinds = {q.requester_kind for q in questions}
    assert kinds == {"owner", "known_person", "anonymous"}
    for question in questions:
        assert bool(question.asker_name) == (question.requester_kind != "anonymous")
        assert not question.relationship or question.requester_kind == "known_person"


def test_the_order_differs_between_runs_and_the_sample_does_not() -> None:
    """Two seeds may give a few questions the same order by chance; of 35 questions they do not."""
    values = {"dataset": EXAMPLE, "backends": ["bm25"], "readers": [{"spec": "extractive"}]}
    reader = ReaderRef(name="extractive", kind="extractive", model="extractive", context_window_tokens=100)
    with open_dataset(EXAMPLE) as dataset:

        def planned(**more: object) -> tuple[int, list[str]]:
            plan = plan_run(parse_config({**values, **more}, "test"), dataset, [choose_backend("bm25")], [reader])
            return plan.manifest.order_seed, [q.instance.instance_id for q in plan.questions]

        (one_seed, first_order), (other_seed, second_order) = planned(), planned()
        assert one_seed != other_seed
        assert first_order != second_order
        assert sorted(first_order) == sorted(second_order)
        assert planned(order_seed=one_seed) == (one_seed, first_order)
        assert planned(id_key="0" * 64) == planned(id_key="0" * 64)
        assert sorted(planned(limit=6)[1]) == sorted(planned(limit=6)[1])


def test_questions_left_out_by_name_are_named_in_the_manifest() -> None:
    values = {"dataset": EXAMPLE, "backends": ["bm25"], "readers": [{"spec": "extractive"}], "leave_out": ["qa_0001"]}
    reader = ReaderRef(name="extractive", kind="extractive", model="extractive", context_window_tokens=100)
    config = parse_config(values, "test")
    with open_dataset(EXAMPLE) as full_dataset, open_dataset(EXAMPLE, leave_out=config.leave_out) as dataset:
        plan = plan_run(config, dataset, [choose_backend("bm25")], [reader])
        assert plan.manifest.question_filter == "without qa_0001"
        assert plan.manifest.dataset.sha256 == full_dataset.sha256
        assert {q.instance.instance_id for q in plan.questions} == {i.instance_id for i in full_dataset.instances} - {
            "qa_0001"
        }
        assert plan.manifest.dataset.instance_count == len(full_dataset.instances) - 1
