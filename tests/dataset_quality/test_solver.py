"""Tests the solver: it answers from the evidence only, and does not know what the evidence does not state."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from memarena_dataset.gold import ClozeGold
from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue, DateValue, NameValue, OrderValue, SetValue, TermValue, TimeValue
from memarena_dataset_quality.answers import gold_values, states_all
from memarena_dataset_quality.solver.dates import past_day
from memarena_dataset_quality.solver.details import candidates
from memarena_dataset_quality.solver.evidence import EvidenceTurn, Task, task_of
from memarena_dataset_quality.solver.lexicon import Lexicon, base_id, typed_value
from memarena_dataset_quality.solver.solve import Solved, is_value_question, solve_worlds
from memarena_dataset_quality.solver.times import as_asked, listed
from memarena_dataset_quality.world import World, read_world

from .worlds import evidence_ids, retold

TODAY = date(2025, 1, 8)
"""A Wednesday."""


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


@pytest.fixture(scope="module")
def others(other_small_worlds: list[Path]) -> list[World]:
    """Worlds that only teach which names, places and terms there are."""
    return [read_world(folder) for folder in other_small_worlds]


def test_the_gold_follows_from_the_evidence(world: World, others: list[World]) -> None:
    """Every value question of the world, all families."""
    result = solve_worlds([world], others)
    assert result.questions >= 50
    # two small worlds teach few names and terms; the bar of 0.99 is for a report over many
    assert result.right / result.questions >= 0.95, result.misses
    assert set(result.by_family) == {
        instance.family.value for instance in world.instances if is_value_question(instance)
    }


@pytest.fixture(scope="module")
def unsaid(world: World) -> Solved:
    """What the solver makes of the world if its evidence says nothing."""
    cited = evidence_ids(world)
    return solve_worlds([retold(world, lambda turn: "Nice." if turn.turn_id in cited else turn.text)], [])


def test_without_the_words_of_the_evidence_nothing_is_solved(unsaid: Solved) -> None:
    """The golds are not read from anywhere else; who spoke, where and when stays known."""
    solved = {family: right / total for family, (right, total) in unsaid.by_family.items()}
    assert solved.pop(Family.METADATA.value) > 0.3
    assert max(solved.values()) < 0.1, solved


def test_misses_name_question_and_gold(world: World, unsaid: Solved) -> None:
    """So that somebody can look at them."""
    assert unsaid.questions == unsaid.right + len(unsaid.misses)
    assert all(miss.query and miss.gold and miss.world == world.path.name for miss in unsaid.misses)


def test_evidence_of_another_question_does_not_solve(world: World) -> None:
    """Exchanged evidence gives other values: what is solved is read, not guessed."""
    indices = [
        index
        for index, instance in enumerate(world.instances)
        if instance.family is Family.QA and is_value_question(instance)
    ]
    golds = [world.instances[index] for index in indices]
    instances = list(world.instances)
    for index, other in zip(indices, golds[1:] + golds[:1], strict=True):
        instances[index] = instances[index].model_copy(update={"evidence_turn_ids": other.evidence_turn_ids})
    result = solve_worlds([replace(world, instances=tuple(instances[index] for index in indices))], [])
    right, total = result.by_family[Family.QA.value]
    assert right / total < 0.3


def test_a_fact_of_its_own_teaches_no_word(world: World) -> None:
    """A value that only the asked fact has is unknown to the lexicon while that fact is asked after."""
    fact = next(candidate for candidate in world.facts if isinstance(typed_value(candidate), TermValue))
    value = typed_value(fact)
    assert isinstance(value, TermValue)
    lonely = replace(world, facts=(fact,))
    lexicon = Lexicon([lonely])
    words = value.text.lower().split()
    assert not lexicon.positions_of("term", words, base_id(world, fact.fact_id))
    assert list(lexicon.positions_of("term", words, "another fact")) == [value.text]


def test_a_task_holds_no_gold(world: World) -> None:
    """Types are told, values are not, unless the words of question or evidence hold them."""
    for instance in filter(is_value_question, world.instances):
        task = task_of(world, instance)
        assert task.kinds == tuple(dict.fromkeys(value.type for value in gold_values(instance)))
        assert set(task.__dataclass_fields__) == {"query", "kinds", "attribute", "own", "ego", "people", "turns"}
        if isinstance(instance.gold, ClozeGold):
            assert instance.gold.answer_letter not in task.kinds


@pytest.mark.parametrize(
    ("sentence", "meant"),
    [
        ("I sold the bike yesterday.", "2025-01-07"),
        ("On Monday I sold it.", "2025-01-06"),
        ("It was on Wednesday that I sold it.", "2025-01-01"),
        ("I sold it three days ago.", "2025-01-05"),
        ("The day before yesterday I sold it.", "2025-01-06"),
        ("I sold it today.", "2025-01-08"),
        ("On December 28 I sold it.", "2024-12-28"),
        ("I sold it on the 3rd.", "2025-01-03"),
        ("I sold it.", None),
    ],
)
def test_past_days_are_read_as_people_mean_them(sentence: str, meant: str | None) -> None:
    """Seen from a Wednesday."""
    day = past_day(sentence, TODAY)
    assert (day.isoformat() if day else None) == meant


def test_listed_things_are_found_in_any_form() -> None:
    """With semicolons after a colon, by lines, by commas."""
    things = ["I sold it", "Maya swam", "Leo cooked"]
    assert listed("In which order, first to last: I sold it; Maya swam; Leo cooked?") == things
    assert listed("Put these in order:\n1. I sold it\n2. Maya swam\n3. Leo cooked") == things
    assert listed("Order I sold it, Maya swam, Leo cooked")[1:] == things[1:]


@pytest.mark.parametrize(
    ("answer", "right"),
    [("It cost 45 euros", True), ("forty-five", True), ("45 or 46", False), ("46", False), ("", False)],
)
def test_amounts_are_matched_strictly(answer: str, right: bool) -> None:
    """An answer with another number in digits is wrong."""
    assert states_all((AmountValue(amount=45),), answer, TODAY) is right


def test_values_of_all_types_are_matched_strictly() -> None:
    """One answer that is right and one that is not, of each kind."""
    assert states_all((TimeValue(time="16:35"),), "at 4:35 pm", TODAY)
    assert not states_all((TimeValue(time="16:35"),), "4:35 pm or 5:10 pm", TODAY)
    assert states_all((DateValue(date="2025-01-05"),), "January 5, 2025", TODAY)
    assert not states_all((DateValue(date="2025-01-05"),), "on Sunday", TODAY)
    assert states_all((NameValue(name="Okafor", aliases=("Dr. Okafor",)),), "I see Dr. Okafor", TODAY)
    assert not states_all((NameValue(name="Okafor"),), "I see Dr. Moss", TODAY)
    both = SetValue(members=(NameValue(name="Maya Chen"), NameValue(name="Leo Sato")))
    assert states_all((both,), "Maya and Leo", TODAY)
    assert not states_all((both,), "Maya", TODAY)
    order = OrderValue(items=(TermValue(text="I swam"), TermValue(text="Leo cooked")))
    assert states_all((order,), "I swam; Leo cooked", TODAY)
    assert not states_all((order,), "Leo cooked; I swam", TODAY)
    assert not states_all((), "anything", TODAY)


def told(query: str, *sentences: str, kinds: tuple[str, ...] = ("term",)) -> Task:
    """A task with one evidence turn of Maya Chen."""
    turn = EvidenceTurn("Maya Chen", ("Leo Sato",), False, TODAY, None, "face to face", sentences)
    return Task(query, kinds, None, "own", "Leo Sato", ("Maya Chen", "Leo Sato"), (turn,))


def test_what_answers_a_question_just_put_belongs_to_it(world: World) -> None:
    """What the turn says elsewhere is no answer."""
    sentences = ("Over pancakes a kite flew away.", "My trick for the soup?", "Zanzibar quillwort.")
    assert "Zanzibar" in candidates(told("What is the trick for the soup?", *sentences), Lexicon([world]), 1)[0]


def test_names_nobody_knows_are_read_by_their_form() -> None:
    """A title or two capitals make a name; a word in small letters is none."""
    query = "Which doctor does Maya see about the knee?"
    task = told(query, "Speaking of doctors, she sees Dr. Delacroix about the knee.", kinds=("name",))
    assert "Delacroix" in candidates(task, Lexicon([]), 1)[0]
    task = told(
        "Who teaches Latin?", "The class, by the way: Magda Wolska teaches Latin, although deaf.", kinds=("name",)
    )
    assert candidates(task, Lexicon([]), 1) == ["Magda Wolska"]


def test_the_former_answer_is_the_one_before_the_last_change() -> None:
    """Whatever the question calls its subject; a word on changes in passing is none."""
    query = "Please give the former answer, not the present one, as to who runs the latest project."
    first = told(query, "Prices had changed.", "Mr. Harding runs it.").turns[0]
    task = replace(told(query), turns=(first, first, told(query, "Small correction: Ms. Tanaka runs it.").turns[0]))
    assert as_asked(task).turns == (first, first)
    late = replace(task, query="What is the latest on who runs the project?")
    assert as_asked(late).turns == task.turns[2:]
