"""Where gold is text only, thresholds on token-F1 decide, with the key date first for temporal questions."""

from __future__ import annotations

import pytest
from memarena.judging import Judgment, judge
from memarena.judging.judgment import Code
from memarena.judging.token_f1 import threshold_of
from memarena_dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, Gold, TextGold
from memarena_dataset.model import Family

from ..support.logs import make_question


def rule(family: Family, gold: Gold, answer: str) -> Judgment:
    return judge(make_question("q1", family, gold, "What happened?"), [], answer, "")


def test_thresholds_are_those_of_the_design() -> None:
    assert {f.value: threshold_of(f) for f in Family} == {
        "d1_conflict": 0.20,
        "d2_anaphora": 0.20,
        "d10_counterfactual": 0.25,
        "d6_metadata": 0.35,
        "d7_qa": 0.35,
        "d8_temporal": 0.50,
        "d3_confabulation": 0.50,
        "d5_cloze": 0.50,
        "d4_permission": 0.50,
        "x1_witness": 0.50,
    }


@pytest.mark.parametrize(
    ("family", "answer", "right"),
    [
        (Family.QA, "self-care matters", True),
        (Family.QA, "that self-care is important", True),
        (Family.QA, "that is how it went", False),
        (Family.METADATA, "self-care is really important to everyone in the big world today", True),
        (Family.CONFABULATION, "self-care is really important to everyone in the big world today", False),
    ],
)
def test_an_answer_is_right_from_its_familys_threshold_on(family: Family, answer: str, right: bool) -> None:
    judgment = rule(family, TextGold(answers=("self-care is important",)), answer)
    assert (judgment.correct, judgment.route) == (right, "token_f1"), judgment


def test_the_threshold_itself_is_enough() -> None:
    judgment = rule(Family.CONFABULATION, TextGold(answers=("red blue car",)), "red")
    assert (judgment.score, judgment.correct) == (0.5, True)


def test_the_best_of_several_answers_counts() -> None:
    assert rule(Family.QA, TextGold(answers=("Sweden", "her home country")), "Her home country").score == 1.0


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("7 May 2023", "May 7, 2023", True),
        ("7 May 2023", "On 7 May 2023 she went there with all of her friends and her family", True),
        ("7 May 2023", "8 May 2023", False),
        ("2022", "In 2022", True),
        ("2022", "2021", False),
        ("June 2023", "in June", True),
        ("The sunday before 25 May 2023", "21 May 2023", True),
        ("The week before 9 June 2023", "9 June 2023", False),
        ("The week before 9 June 2023", "the week before 9 June 2023", True),
        ("4 years", "4 years", True),
        ("Since 2016", "for about seven years", False),
    ],
)
def test_temporal_answers_are_decided_by_the_key_date(gold: str, answer: str, right: bool) -> None:
    judgment = rule(Family.TEMPORAL, TextGold(answers=(gold,)), answer)
    assert judgment.correct is right, judgment.why


def test_a_conflict_needs_words_of_both_versions() -> None:
    gold = ConflictGold(original_detail="the red car", changed_detail="the blue car")
    assert rule(Family.CONFLICT, gold, "First it was the red car, then the blue car.").correct
    assert not rule(Family.CONFLICT, gold, "It was the red car.").correct


def test_a_counterfactual_must_be_nearer_to_the_fact_than_to_the_premise() -> None:
    gold = CounterfactualGold(real_fact="He adopted a greyhound", altered_detail="a spaniel")
    assert rule(Family.COUNTERFACTUAL, gold, "He adopted a greyhound, not a spaniel.").correct
    assert not rule(Family.COUNTERFACTUAL, gold, "a spaniel").correct


def test_an_anaphora_takes_the_referent_or_what_was_said_of_it() -> None:
    gold = AnaphoraGold(referent="the harbour museum", antecedent_text="I restored their old atlas")
    assert rule(Family.ANAPHORA, gold, "The museum").correct
    assert rule(Family.ANAPHORA, gold, "She restored their old atlas").correct
    assert not rule(Family.ANAPHORA, gold, "Bob").correct


@pytest.mark.parametrize("answer", ["I don't know.", "The context does not mention that self-care is important.", ""])
def test_declining_an_answerable_question_is_wrong_whatever_its_words(answer: str) -> None:
    judgment = rule(Family.QA, TextGold(answers=("self-care is important",)), answer)
    assert not judgment.correct
    assert judgment.code in (Code.DECLINES, Code.NO_ANSWER)
