"""Tests answers that a judge by patterns got wrong, and that a comparison of claims gets right.

They are kept so that no later judge errs on them again.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from memarena.judging import judge
from memarena_dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, Gold, TextGold
from memarena_dataset.model import Family
from memarena_dataset.values import (
    AmountValue,
    DurationValue,
    NameValue,
    PlaceValue,
    TermValue,
    TimeValue,
    Value,
)

from ..support.logs import make_evidence, make_question


def text(value: Value) -> TextGold:
    return TextGold(answers=("as typed",), values=(value,))


def conflict(value: Value, other: Value) -> ConflictGold:
    return ConflictGold(
        original_detail="a",
        changed_detail="b",
        values=(value,),
        changed_values=(other,),
        source_agent="Jamila Fischer",
        conflicting_agent="Goran Fitzgerald",
    )


def judged(question: str, gold: Gold, family: Family, answer: str, *statements: tuple[str, str]) -> bool:
    evidence = make_evidence("sess_1", *statements)
    question_record = make_question("q1", family, gold, question, evidence=["sess_1"], asker_name="Uma Mensah")
    question_record = question_record.model_copy(update={"ego_name": "Uma Mensah"})
    return judge(question_record, [evidence], answer, "").correct


def check(
    question: str, gold: Gold, family: Family, statements: Sequence[tuple[str, str]], answer: str, right: bool
) -> None:
    assert judged(question, gold, family, answer, *statements) is right, answer


SPOT = text(TermValue(text="in the violin case"))
MOVED = [("Uma Mensah", "I moved the letters. They were in the violin case, now they are behind the spice jars.")]
BEFORE = "Please give the former answer, not the present one, as to where I keep the old letters."


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("It used to be in the violin case (now behind the spice jars).", True),
        ("Currently behind the spice jars. Before that, it was in the violin case.", True),
        ("It was moved from in the violin case to behind the spice jars.", True),
        ("It used to be behind the spice jars (now in the violin case).", False),
        ("The latest information says in the violin case; the older one said behind the spice jars.", False),
        ("Currently in the violin case. Before that, it was behind the spice jars.", False),
    ],
)
def test_a_version_question_is_judged_role_by_role(answer: str, right: bool) -> None:
    check(BEFORE, SPOT, Family.QA, MOVED, answer, right)


@pytest.mark.parametrize("answer", ['{"answer":"13."}', "The answer is 13.", '{"answer": 13}', "13 days.", "Thirteen"])
def test_a_bare_number_counts_in_the_unit_of_the_question(answer: str) -> None:
    question = "What is the difference, counted in days, between the dates on which I moved and I paid?"
    check(question, text(DurationValue(days=13)), Family.TEMPORAL, [], answer, True)
    check(question, text(DurationValue(days=23)), Family.TEMPORAL, [], answer, False)


PLACES = conflict(PlaceValue(name="the Lantern Room"), PlaceValue(name="the Salt House"))
TOLD = [
    ("Jamila Fischer", "I booked the Lantern Room for the supper."),
    ("Goran Fitzgerald", "Jamila has the supper at the Salt House."),
]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Jamila Fischer: the Lantern Room; Goran Fitzgerald: the Salt House", True),
        ("- Jamila Fischer: the Lantern Room\n- Goran Fitzgerald: the Salt House", True),
        ('{"Jamila Fischer": "the Lantern Room", "Goran Fitzgerald": "the Salt House"}', True),
        ("The Lantern Room (Jamila) versus the Salt House (Goran).", True),
        ("The Lantern Room and the Salt House.", True),
        ("Goran said the Lantern Room, and Jamila said the Salt House.", False),
        ("Goran Fitzgerald: the Lantern Room; Jamila Fischer: the Salt House", False),
        ("The Lantern Room, as Jamila told you.", False),
    ],
)
def test_a_conflict_names_both_versions_each_as_its_own_source_told_it(answer: str, right: bool) -> None:
    question = "Opinions differ as to where Jamila Fischer has the supper. What did either source claim?"
    check(question, PLACES, Family.CONFLICT, TOLD, answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("10:50 was the old value; it has since become 10:20.", False),
        ("It used to be 10:50, but 10:20 is correct now.", False),
        ("Not 10:20, it's 10:50.", True),
        ("10:20 isn't right: the train leaves at 10:50.", True),
    ],
)
def test_calling_the_fact_outdated_does_not_correct_the_premise(answer: str, right: bool) -> None:
    gold = CounterfactualGold(
        real_fact="10:50",
        altered_detail="10:20",
        values=(TimeValue(time="10:50"),),
        altered_values=(TimeValue(time="10:20"),),
    )
    check("Suppose my train leaves at 10:20. Is that accurate?", gold, Family.COUNTERFACTUAL, [], answer, right)


RENT = text(AmountValue(amount=335, unit="euros"))
PAID = [("Uma Mensah", "I pay 335 euros for the garage."), ("Xavier Ortiz", "Mine costs 785 euros.")]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("You pay 335 euros, while Xavier pays 785.", True),
        ("335 euros. Xavier is the one who pays 785 euros.", True),
        ("You pay 785 euros, while Xavier pays 335.", False),
        ("Xavier pays 335 euros.", False),
        ("Xavier pays 335 euros; you pay 785 euros.", False),
    ],
)
def test_a_true_contrast_is_right_and_the_right_value_of_another_person_wrong(answer: str, right: bool) -> None:
    check("How much do I pay a month for the garage?", RENT, Family.QA, PAID, answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The secret ingredient is allspice. Final answer: smoked paprika.", False),
        ("At first I thought of smoked paprika. Final answer: allspice.", True),
        ("Smoked paprika. No, wait, it's allspice.", True),
        ("Allspice... sorry, I meant smoked paprika, that is it.", False),
        ("Probably allspice.", True),
        ("Perhaps allspice.", False),
    ],
)
def test_the_final_statement_counts(answer: str, right: bool) -> None:
    check("What is my secret ingredient?", text(TermValue(text="allspice")), Family.QA, [], answer, right)
    check("Which object is meant?", _referent("allspice"), Family.ANAPHORA, [], answer, right)


def _referent(thing: str) -> AnaphoraGold:
    return AnaphoraGold(referent=thing, antecedent_text=thing, values=(TermValue(text=thing),))


def test_a_thing_may_be_named_without_its_quantity() -> None:
    check("What did I buy?", text(TermValue(text="a pair of ice skates")), Family.QA, [], "ice skates", True)
    check("What did I buy?", text(TermValue(text="a pair of ice skates")), Family.QA, [], "skis", False)


def test_the_answer_may_address_the_asker() -> None:
    gold = text(NameValue(name="Zapata", aliases=("Mr. Zapata",)))
    question = "Whom did my employer make responsible for the night shift plan?"
    check(question, gold, Family.QA, [], "Mr Zapata is in charge of the night shift plan at your work.", True)


def test_the_value_may_come_late_in_the_answer() -> None:
    long = "You talked about the garage on several evenings, and about much else besides. " * 6
    check("How much do I pay a month for the garage?", RENT, Family.QA, PAID, f"{long}It is 335 euros a month.", True)


LOAVES = [("Uma Mensah", "Ada Brook leaves her loaves in for 48 minutes."), ("Lev Stone", "I leave mine for 31.")]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Ada Brook leaves hers in for 31 minutes, and you for 48.", False),
        ("48 minutes. Ada Brook's take 31 minutes.", False),
        ("Ada leaves them in for 48 minutes; for yours 31 minutes are enough.", True),
        ("Ada's loaves used to take 31 minutes; the time is 48 minutes by now.", True),
        ("48 minutes was written down. I correct it to 31 minutes.", False),
        ("31 minutes was written down. I correct it to 48 minutes.", True),
    ],
)
def test_another_persons_value_is_wrong_if_the_answer_gives_the_person_another(answer: str, right: bool) -> None:
    question = "How long does Ada Brook leave her loaves in the oven?"
    check(question, text(AmountValue(amount=48, unit="minutes")), Family.QA, LOAVES, answer, right)


HOUSE = text(AmountValue(amount=500_000, unit="euros"))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("You paid half a million euros.", True),
        ("You paid half-a-million euros.", True),
        ("You paid 0.5 million euros.", True),
        ("You paid ½ million euros.", True),
        ("You paid a million euros.", False),
        ("You paid one and a half million euros.", False),
        ("You paid 5 million euros.", False),
    ],
)
def test_shares_of_a_million_are_read(answer: str, right: bool) -> None:
    check("What did I pay for the house?", HOUSE, Family.QA, [], answer, right)
