"""Tests golds in text: typed values decide first, then the gold's own words, declining, and the model."""

from __future__ import annotations

import pytest
from memarena.judging import Judgment
from memarena.judging import judge as judge_answer
from memarena.judging.judgment import Code
from memarena.judging.text_gold.judge import judge_text
from memarena_dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, Gold, TextGold
from memarena_dataset.model import Family

from ..support.logs import make_question


def judge(gold: str | Gold, answer: str, question: str = "What happened?", family: Family = Family.QA) -> Judgment:
    record = TextGold(answers=(gold,)) if isinstance(gold, str) else gold
    return judge_answer(make_question("q1", family, record, question), [], answer, answer)


WHEN = "When did Ilka visit the lighthouse?"


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("4 July 2021", "On July 4th, 2021.", True),
        ("4 July 2021", "Ilka visited it on 4 July, a warm Sunday.", True),
        ("4 July 2021", "5 July 2021", False),
        ("4 July 2021", "In July 2021", False),
        ("4 July 2021", "As she mentioned on 9 July 2021, the visit was on 4 July 2021.", True),
        ("the week before 12 March 2020", "around 9 March 2020", True),
        ("the week before 12 March 2020", "the week before 15 March 2020", False),
        ("the Tuesday before 12 March 2020", "10 March 2020", True),
        ("the Tuesday before 12 March 2020", "12 March 2020", False),
        ("early March 2020", "on the 3rd of March 2020", True),
        ("early March 2020", "late March 2020", False),
        ("19Febuary, 2022", "19 February 2022", True),
        ("March 2020", "03/2020", True),
        ("2019", "In 2018.", False),
        ("2019", "It was in October 2019.", True),
    ],
)
def test_dates_are_compared_as_calendar_intervals(gold: str, answer: str, right: bool) -> None:
    assert judge(gold, answer, WHEN, Family.TEMPORAL).correct is right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("Twice", "2 times", True),
        ("three times", "two times", False),
        ("5 years", "five", True),
        ("around 30", "About thirty people.", True),
        ("90 minutes", "an hour and a half", True),
        ("90 minutes", "60 minutes or 90 minutes", False),
        ("6 days. 7 days is also acceptable", "a week", True),
        ("40-60 seconds", "20-60 seconds", False),
        ("a red kite with 3 tails", "a red kite with 4 tails", False),
    ],
)
def test_another_number_is_never_right(gold: str, answer: str, right: bool) -> None:
    assert judge(gold, answer, "How many, or how long?").correct is right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("Likely no; she is afraid of heights", "No, since she dislikes crowds.", True),
        ("Likely no; she is afraid of heights", "Yes, she loves towers.", False),
        ("Yes", "I believe the answer is yes.", True),
        ("Yes", "Not really.", False),
    ],
)
def test_yes_or_no_decides(gold: str, answer: str, right: bool) -> None:
    assert judge(gold, answer, "Would Ilka climb the tower?").correct is right


@pytest.mark.parametrize(
    "frame", ["{}", "Based on our earlier chats, it was {}.", "They said it was {} when they talked about it."]
)
@pytest.mark.parametrize("gold", ["a brass telescope", "walnuts, figs and honey", "to pay for the roof"])
def test_the_gold_verbatim_is_right_in_any_sentence(frame: str, gold: str) -> None:
    assert judge(gold, frame.format(gold)).correct


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("a brass telescope", "Her uncle left her an old telescope made of brass, which she keeps on the desk.", True),
        ("a brass telescope", "Her uncle left her a silver pocket watch.", False),
        ("a brass telescope", "Something from her uncle.", False),
        ("walnuts, figs and honey", "It was filled with honey, dried figs and chopped walnuts.", True),
        ("walnuts, figs and honey", "It was filled with apples, raisins and cinnamon.", False),
    ],
)
def test_what_is_no_value_is_compared_by_meaning(gold: str, answer: str, right: bool) -> None:
    judgment = judge(gold, answer, "What did Ilka get or bake?")
    assert judgment.correct is right
    assert judgment.code is (Code.STATES_GOLD if right else Code.OTHER_CONTENT)
    assert judgment.route == "text"


@pytest.mark.parametrize("answer", ["I don't know.", "The conversation does not mention what she got.", ""])
def test_declining_an_answerable_question_is_wrong(answer: str) -> None:
    judgment = judge("a brass telescope", answer)
    assert not judgment.correct
    assert judgment.code in (Code.DECLINES, Code.NO_ANSWER)


def test_token_f1_is_the_score_and_does_not_decide() -> None:
    judgment = judge("a brass telescope", "a brass trumpet")
    assert judgment.score > 0.35
    assert not judgment.correct


def test_a_conflict_needs_both_versions() -> None:
    gold = ConflictGold(original_detail="she has never sailed", changed_detail="she won a regatta")
    both = "On one occasion she claimed that she has never sailed, on another that she won a regatta."
    assert judge(gold, both, family=Family.CONFLICT).correct
    assert not judge(gold, "She won a regatta.", family=Family.CONFLICT).correct


def test_a_counterfactual_needs_the_fact_and_not_the_premise() -> None:
    gold = CounterfactualGold(real_fact="He adopted a greyhound", altered_detail="a spaniel")
    assert judge(gold, "He adopted a greyhound, not a spaniel.", family=Family.COUNTERFACTUAL).correct
    assert not judge(gold, "a spaniel", family=Family.COUNTERFACTUAL).correct


def test_an_anaphora_takes_the_referent_or_what_was_reported_of_it() -> None:
    gold = AnaphoraGold(referent="the harbour museum", antecedent_text="I restored their old atlas")
    assert judge(gold, "The museum at the harbour.", family=Family.ANAPHORA).correct
    assert judge(gold, "She restored their old atlas", family=Family.ANAPHORA).correct
    assert not judge(gold, "Bob", family=Family.ANAPHORA).correct


@pytest.mark.parametrize(
    ("gold", "whole", "half"),
    [
        ("a lantern and two oars", "Two oars, and a lantern.", "It was a lantern."),
        ("mending nets and salting herring", "salting herring and mending nets", "mending nets"),
        ("plums, quinces and a sack of barley", "plums and a sack of barley", "They spoke of plums."),
    ],
)
def test_half_of_a_gold_in_parts_is_wrong(gold: str, whole: str, half: str) -> None:
    question = "What did Torben do or bring at the harbour?"
    assert judge_text(question, (gold,), whole).correct
    assert not judge_text(question, (gold,), half).correct
