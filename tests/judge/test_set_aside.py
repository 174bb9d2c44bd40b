"""A value that is put down as somebody's belief, while another is given for it, is not the answer."""

from __future__ import annotations

import pytest
from memarena.dataset.gold import ConflictGold, CounterfactualGold, Gold, TextGold
from memarena.dataset.model import Family
from memarena.dataset.values import AmountValue, DateValue, TimeValue
from memarena.judge import judge_answer
from memarena.judge.calibration.saying import fill
from memarena.judge.learning import texts
from memarena.judge.value_wording import raw_words

from ..support.logs import make_evidence, make_question

EVIDENCE = make_evidence("sess_1", ("Maya Chen", "The tent cost me 52 euros."), ("Ines Okafor", "Honestly? A bargain."))
PRICE = TextGold(answers=("52 euros",), values=(AmountValue(amount=52, unit="euros"),))
TIMES = CounterfactualGold(
    real_fact="leaves at 16:22",
    altered_detail="7:21 p.m.",
    values=(TimeValue(time="16:22"),),
    altered_values=(TimeValue(time="19:21"),),
)
SUMS = ConflictGold(
    original_detail="770 euros",
    changed_detail="1450 euros",
    values=(AmountValue(amount=770, unit="euros"),),
    changed_values=(AmountValue(amount=1450, unit="euros"),),
)
DAYS = ConflictGold(
    original_detail="22 May 2025",
    changed_detail="25 May 2025",
    values=(DateValue(date="2025-05-22"),),
    changed_values=(DateValue(date="2025-05-25"),),
)
SET_ASIDE = [
    "You perhaps still have {o} at the back of your mind, but Maya was plain about it. It's {v}.",
    "Loads of folks would have remembered {o}, which isn't what Maya told you. She paid {v}.",
    "{o} springs to mind, I admit. However, the tent cost Maya {v}.",
    "You might be dreaming of {o}. In reality Maya paid {v}.",
    "My gut reaction would be {o}, but Maya's own words give {v}.",
]


def ruled(gold: Gold, answer: str, family: Family = Family.QA, asked: str = "How much did the tent cost?") -> str:
    ruling = judge_answer(make_question("q1", family, gold, asked, evidence=["sess_1"]), [EVIDENCE], answer)
    return "" if ruling.correct else ruling.reason


@pytest.mark.parametrize("answer", SET_ASIDE)
def test_the_value_that_is_set_aside_counts_neither_for_nor_against_the_answer(answer: str) -> None:
    assert ruled(PRICE, fill(answer, {"o": "53 euros", "v": "52 euros"})) == ""
    assert ruled(PRICE, fill(answer, {"o": "52 euros", "v": "53 euros"})) != ""


def test_a_value_that_others_may_have_in_mind_holds_where_nothing_is_put_for_it() -> None:
    assert ruled(PRICE, "You may have 52 euros in mind. That's it.") == ""


def test_the_full_stop_of_an_abbreviation_can_end_the_sentence() -> None:
    asked = "Suppose the train leaves at 7:21 pm. Is that accurate, and what would be correct?"
    for answer in ("Not 7:21 p.m.. 16:22.", "Not 7:21 p.m. 16:22."):
        assert ruled(TIMES, answer, Family.COUNTERFACTUAL, asked) == ""
    assert ruled(TIMES, "Not 16:22. 7:21 p.m..", Family.COUNTERFACTUAL, asked) != ""
    assert fill("Not {a}. {v}... {v}.", {"a": "7 p.m.", "v": "4 p.m."}) == "Not 7 p.m. 4 p.m.... 4 p.m."


def test_what_counts_the_versions_is_read_neither_as_a_time_nor_as_a_length() -> None:
    asked = "Which two prices of the boat was I told?"
    assert ruled(SUMS, "770 euros and also €1450: two versions.", Family.CONFLICT, asked) == ""
    assert ruled(SUMS, "In one chat it's 770 euros, in a second chat it's €1450.", Family.CONFLICT, asked) == ""
    asked = "Which two days was I told?"
    assert ruled(DAYS, "22 May 2025 and also May 25: two versions.", Family.CONFLICT, asked) == ""
    answer = "The latest word is May 22, although Sunday, May 25, 2025 had been stated too."
    assert ruled(DAYS, answer, Family.CONFLICT, asked) == ""


def test_several_things_given_for_one_are_no_answer() -> None:
    for answer in (
        "All of that talk: 53 euros, 52 euros, 18 euros. What you are after is somewhere in there.",
        "Some of it says 52 euros, some says 53 euros.",
        "A: 53 euros A: 52 euros A: 18 euros",
    ):
        assert ruled(PRICE, answer) != "", answer


def test_nothing_is_learned_from_these_answers() -> None:
    learned = {" ".join(text.said) for text in texts()}
    assert not learned & {" ".join(raw_words(fill(a, {"o": "zqo", "v": "zqv"}))) for a in SET_ASIDE}


@pytest.mark.parametrize(
    ("gold", "family", "answer", "right"),
    [
        (TIMES, Family.COUNTERFACTUAL, "Nowhere do I find 7:21 p.m. confirmed; the train leaves at 16:22.", True),
        (TIMES, Family.COUNTERFACTUAL, "7:21 p.m. is confirmed, whatever 16:22 may be.", False),
        (TIMES, Family.COUNTERFACTUAL, "Premise: 7:21 p.m.\nIn the notes: 16:22\nThe premise is false.", True),
        (TIMES, Family.COUNTERFACTUAL, "Premise: 7:21 p.m.\nIn the notes: 16:22\nThe premise holds.", False),
        (TIMES, Family.COUNTERFACTUAL, "It's 16:22, and 7:21 p.m., as your question has it, is mistaken.", True),
        (SUMS, Family.CONFLICT, "The first thing told was 770 euros, later it became 1450 euros.", True),
        (SUMS, Family.CONFLICT, "The only thing told was 770 euros, later he added 1450 euros as a joke.", False),
        (SUMS, Family.CONFLICT, "770 euros or 1450 euros, I would flip a coin.", False),
        (SUMS, Family.CONFLICT, "770 euros and 1450 euros, neither of which comes from your notes.", False),
        (SUMS, Family.CONFLICT, "€770 and €1450: both were told.", True),
        (PRICE, Family.QA, "Not 53, but fifty-two euros: that is how Maya put it.", True),
        (PRICE, Family.QA, "It's 52 euros; the rest of that chat was a joke or two.", True),
        (PRICE, Family.QA, "Folks often say 52 euros, though you paid more.", False),
        (PRICE, Family.QA, "There is 53 euros too, but that's another matter. The tent was 52 euros.", True),
        (PRICE, Family.QA, "There is 52 euros too, but that's another matter. The tent was not cheap.", False),
        (PRICE, Family.QA, "Wrong answer: 52 euros.", False),
        (PRICE, Family.QA, "52 euros is half of it; both halves count.", False),
    ],
)
def test_what_stands_around_a_value_says_whether_it_is_given(
    gold: Gold, family: Family, answer: str, right: bool
) -> None:
    assert (ruled(gold, answer, family) == "") is right
