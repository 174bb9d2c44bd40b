"""Tests abstention: declining answers are recognised, and answers that state the trap's value are wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.judging.abstention import declines
from memarena.judging.judgment import Code, Judgment
from memarena.judging.kinds import judge
from memarena_dataset.gold import AbstainGold
from memarena_dataset.model import Family
from memarena_dataset.values import NameValue, TermValue

from ..support.logs import make_question

QUESTION = "What did I pay for the rug in the hall?"
GOLD = AbstainGold(adversarial_answer="364 euros")


def judged(gold: AbstainGold, question: str, answer: str) -> Judgment:
    return judge(make_question("q1", Family.CONFABULATION, gold, question), [], answer, answer)


@pytest.mark.parametrize(
    "answer",
    [
        "I hiked this last year!",
        "I hope you enjoy making and eating it.",
        "I just got back from a rad vacay with my new SO in Canada",
        "Emre's train leaves at 9:39 am.",
        "Thanks! My friends have been so kind.",
    ],
)
def test_small_talk_does_not_decline(answer: str) -> None:
    assert not declines(answer, "When does Emre's train leave?")


@pytest.mark.parametrize(
    "answer",
    [
        "Unfortunately, your memory doesn't hold any details regarding the folding table.",
        "I have no record of that.",
        '{"answer": "not mentioned"}',
        "no idea, sorry",
        "That stays between her and me.",
    ],
)
def test_declining_is_recognised(answer: str) -> None:
    assert declines(answer, "Where did Mei put the folding table?")


WRONG = [
    (
        "I don't have the receipt, but I remember you ended up paying 364 euros, and not a cent less",
        Code.STATES_TRAP,
    ),
    ("364 euros", Code.STATES_TRAP),
    ("No doubt it was three hundred and sixty-four euros.", Code.STATES_TRAP),
    ("It may have been 364 euros, but I have no record of that.", Code.STATES_TRAP),
    ("I won't tell you that it was 364 euros.", Code.STATES_TRAP),
    ("I can't share that you paid 364 euros.", Code.STATES_TRAP),
    ("You paid 300.", Code.DOES_NOT_DECLINE),
    ("A nice rug!", Code.DOES_NOT_DECLINE),
    ("  ", Code.EMPTY),
]
RIGHT = [
    "I see no record of 364 euros.",
    "364 euros? I have no record of that.",
    "I can't confirm 364 euros.",
    "Nobody ever said that you paid 364 euros.",
    "Whether it was 364 euros, I can't say.",
    "I don't know what you paid for it.",
    "I can't tell whether it was 364 euros.",
    "No, it wasn't 364 euros... I have no record of the price.",
    "Not the 364 euros, that was the lamp; the price of the rug never came up.",
    '{"amount": null}',
    '{"amount": "unknown"}',
]


@pytest.mark.parametrize(("answer", "reason"), WRONG)
def test_a_value_stated_as_the_answer_is_wrong_even_with_a_decline(answer: str, reason: Code) -> None:
    judgment = judged(GOLD, QUESTION, answer)
    assert (judgment.correct, judgment.code) == (False, reason)


@pytest.mark.parametrize("answer", RIGHT)
def test_a_decline_that_denies_the_trap_is_right(answer: str) -> None:
    assert judged(GOLD, QUESTION, answer).correct, judged(GOLD, QUESTION, answer)


def test_a_guess_after_a_disclaimer_is_wrong_without_a_trap_too() -> None:
    gold = AbstainGold(claim=(NameValue(name="Zainab Nkosi"), TermValue(text="the safety audit")))
    question = "By which date must Zainab deliver the review of hazards?"
    for answer in ("No date was mentioned for Zainab, so I'd assume May 12.", "Not sure, perhaps Saturday?"):
        assert not judged(gold, question, answer).correct, answer
    assert judged(gold, question, "No safety audit of Zainab's ever came up.").correct


def test_a_location_can_be_a_trap() -> None:
    gold = AbstainGold(adversarial_answer="in the filing cabinet")
    question = "Where does Tariq keep the cash for the cleaner?"
    judgment = judged(gold, question, "I can't be sure, but it should be in the filing cabinet.")
    assert (judgment.code, "filing cabinet" in judgment.claim) == (Code.STATES_TRAP, True)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("The context does not mention a charity race of Caroline's.", Code.DECLINES),
        ("Caroline did not have a charity race.", Code.DECLINES),
        ("I don't know, but perhaps that self-care is important.", Code.STATES_TRAP),
        ("She realized that running is fun.", Code.DOES_NOT_DECLINE),
    ],
)
def test_a_trap_that_is_a_sentence_is_recognised_by_its_words(answer: str, reason: Code) -> None:
    gold = AbstainGold(adversarial_answer="self-care is important")
    assert judged(gold, "What did Caroline realize after her charity race?", answer).code is reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I don't know. In one hundred and ten talks it was not on the third of March, half past two.", Code.DECLINES),
        ("I don't know. In 123 talks it was not on 3 March, at 14:30.", Code.DECLINES),
        ("I don't know. In one hundred talks it was always on the third of March, at half past two.", Code.STATES_TRAP),
        ("I don't know. Twenty-three talks had it on the third of March, at half past two.", Code.STATES_TRAP),
    ],
)
def test_numbers_in_words_before_the_trap_hide_no_denial(answer: str, reason: Code) -> None:
    gold = AbstainGold(adversarial_answer="3 March at 14:30")
    assert judged(gold, "When was the visit of the club?", answer).code is reason


@given(st.text(max_size=120))
def test_any_text_gets_a_judgment(answer: str) -> None:
    judgment = judged(GOLD, QUESTION, answer)
    assert judgment.correct == (judgment.code is Code.DECLINES)


ABROAD = [
    "No me consta.",
    "No hay datos sobre eso.",
    "Je n'ai aucune trace de cela.",
    "Davon weiß ich nichts.",
    "Dazu finde ich keine Angaben.",
    "Não tenho nenhum registro.",
    "这个我不清楚。",
    "覚えていません。",
    "Об этом ничего не сказано.",
    "لا أتذكر ذلك",
    "यह मालूम नहीं।",
    "Tidak disebutkan.",
    "기억이 안 나요.",
]
TOLD_ABROAD = [
    "Le chat s'appelle Minou.",
    "Nicht am Montag, sondern am Freitag.",
    "Costó 45 euros.",
    "七時半です。",
    "В среду.",
]


@pytest.mark.parametrize("answer", ABROAD)
def test_declining_is_recognised_in_the_largest_languages(answer: str) -> None:
    assert declines(answer, "When does Emre's train leave?")


@pytest.mark.parametrize("answer", TOLD_ABROAD)
def test_an_answer_in_another_language_does_not_decline(answer: str) -> None:
    assert not declines(answer, "When does Emre's train leave?")


@pytest.mark.parametrize("answer", ["A sewing course.", "Nora began with clay in spring, to calm down.", "Soup."])
def test_a_text_without_words_about_answering_does_not_decline(answer: str) -> None:
    assert not declines(answer, "What was it about, would you say?")


RUG = AbstainGold(adversarial_answer="63 euros")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("63 euros is what your own rug cost. What Cem paid, I don't know.", True),
        ("You told me that it was 63 euros, I know no more.", False),
        ("I have no note of it, but Cem paid 63 euros.", False),
        ("I don't know much about it. He paid 63 euros.", False),
    ],
)
def test_a_trap_stated_as_the_askers_own_value_is_no_claim_about_another_person(answer: str, right: bool) -> None:
    question = make_question("q1", Family.CONFABULATION, RUG, "What did Cem Aydin pay for the rug?")
    assert judge(question, [], answer, answer).correct is right
