"""Tests hostile answers: an answer field has a maximum length, lists of values are refused, and none takes long."""

from __future__ import annotations

import pytest
from memarena.judging import judge
from memarena.judging.judgment import Code
from memarena.judging.kinds.cloze import chosen_option
from memarena.judging.leak_detection import label_of, protected_fact, telling_part
from memarena.judging.too_much import MOST_WORDS, is_too_much
from memarena_dataset.gold import AbstainGold, TextGold
from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue

from ..support.logs import make_evidence, make_question, permission

TURNS = [
    ("Ola Brandt", "We have had the damp in the cellar looked at, and it comes from the old well."),
    ("Uma Mensah", "Then the seller has to pay for it, I would write to him before the winter."),
    ("Ola Brandt", "He did lower the price, by the way: the cellar door cost me 90 euros in the end."),
    ("Uma Mensah", "That is what I call a fair man, mine would not even have opened the door."),
]
GOLD = TextGold(answers=("90 euros",), values=(AmountValue(amount=90, unit="euros"),))
RAMBLE = "You spoke of the cellar for quite a while that evening, and of the damp in it. "


def judged(answer: str) -> tuple[bool, Code]:
    evidence = make_evidence("sess_1", *TURNS)
    question = make_question("q1", Family.QA, GOLD, "What did Ola Brandt pay for the door?", evidence=["sess_1"])
    judgment = judge(question, [evidence], answer, answer)
    return judgment.correct, judgment.code


def test_an_answer_field_has_a_maximum_length() -> None:
    short = RAMBLE * 12 + "Ola paid 90 euros for the door."
    assert len(short.split()) < MOST_WORDS
    assert judged(short) == (True, Code.STATES_VALUE)
    assert judged(RAMBLE * 20 + "Ola paid 90 euros for the door.") == (False, Code.TOO_MUCH)


def test_copied_evidence_is_no_answer_with_or_without_speakers() -> None:
    assert judged("\n".join(f"{who}: {text}" for who, text in TURNS)) == (False, Code.TOO_MUCH)
    assert judged(" ".join(text for _, text in TURNS)) == (False, Code.TOO_MUCH)
    assert judged(f'"{TURNS[2][1]}"') == (True, Code.STATES_VALUE)


def test_a_list_with_short_lines_is_not_treated_as_a_transcript() -> None:
    assert not is_too_much("\n".join(f"{day}: the baker's" for day in ("Monday", "Tuesday", "Wednesday", "Thursday")))


PRICES = ("15 euros", "90 euros", "240 euros", "1,100 euros", "62 euros", "7 euros")
LISTS = (
    "{0}, {1}, {2}, {3} and {4}",
    "1. {0}\n2. {1}\n3. {2}\n4. {3}\n5. {4}",
    "Sums I know of: {1}; {0}; {5}; {3}; {2}.",
)


@pytest.mark.parametrize("form", LISTS)
def test_a_list_of_all_values_of_the_golds_type_is_too_much(form: str) -> None:
    assert judged(form.format(*PRICES)) == (False, Code.TOO_MUCH)


def test_distinguished_values_are_not_a_list() -> None:
    prices = (
        "The cellar door was 90 euros; the gate was 15 euros, the fence 240 euros, the well 62 euros, the bell 7 euros."
    )
    assert judged(f"Ola Brandt paid 90 euros for the door. {prices}")[1] is not Code.TOO_MUCH


@pytest.mark.parametrize(
    ("gold", "answer", "code"),
    [
        ("a harp", "a flute, a harp, a drum, a fiddle, an oboe and a lute", Code.TOO_MUCH),
        ("a harp", "- flute\n- harp\n- drum\n- fiddle\n- oboe\n- lute", Code.TOO_MUCH),
        ("a harp", "a harp, a flute and a drum", None),
        ("a harp and a drum", "a flute, a harp, a drum, a fiddle, an oboe and a lute", None),
        ("a harp", "He plays the harp, which he took up when he was ill, at home, alone, and late at night.", None),
    ],
)
def test_a_list_of_many_things_is_too_much_where_a_gold_in_text_is_one(
    gold: str, answer: str, code: Code | None
) -> None:
    question = make_question("q1", Family.QA, TextGold(answers=(gold,)), "What does Ola Brandt play?")
    judgment = judge(question, [], answer, answer)
    assert (judgment.code is Code.TOO_MUCH) == (code is Code.TOO_MUCH)
    assert not (code and judgment.correct)


HOSTILE = {
    "nested lists": "[" * 3000 + "1" + "]" * 3000,
    "nested objects": '{"answer":' * 3000 + "1" + "}" * 3000,
    "sentences": "She said it was 90 euros, or 5:05 pm, and not B. " * 1300,
    "lines": "A: b\n" * 11000,
    "blanks": " \t" * 30000 + "x",
    "digits": "1 " * 30000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_answer_is_judged(answer: str) -> None:
    """Each of these once took between 3 seconds and a minute, or raised RecursionError."""
    assert not judged(answer)[0]
    trap = AbstainGold(adversarial_answer="90 euros")
    question = make_question("q2", Family.CONFABULATION, trap, "What did the lamp cost?")
    assert not judge(question, [], answer, answer).correct
    assert chosen_option(answer, ("Ada", "Bea", "Cem", "Dan")).letter in (None, "A")
    fact = protected_fact(permission("4821", "withhold"), "What is the code?")
    assert label_of(fact, answer) and not telling_part(fact, answer)


def test_the_final_choice_of_a_long_answer_counts() -> None:
    assert chosen_option(RAMBLE * 200 + "\nAnswer: C", ("Ada", "Bea", "Cem", "Dan")).letter == "C"
