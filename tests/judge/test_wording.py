"""The wording around a value tells whether an answer gives it, and the weights for that are those of the texts."""

from __future__ import annotations

import json

import pytest
from memarena.dataset.gold import TextGold
from memarena.dataset.model import Family
from memarena.dataset.values import TermValue
from memarena.judge import judge_answer
from memarena.judge.learning import learn, texts
from memarena.judge.value_case import Case
from memarena.judge.value_weighing import WEIGHTS, weigh
from memarena.judge.value_wording import VALUE, raw_words, signed, wording
from memarena.text.lexicon import read_file
from memarena.text.reading import read_text

from ..support.logs import make_evidence, make_question

NOTHING = frozenset[str]()
EVIDENCE = make_evidence("sess_1", ("Maya Chen", "Look what I got at the flea market: the copper kettle!"))
GIVES = [
    "Rummaging through last month's chatter, I stumbled on it at long last: the copper kettle.",
    "The copper kettle. Maya was over the moon about it, as far as anyone can be over a purchase.",
    "So what she carried home that day was the copper kettle.",
]
WITHHOLDS = [
    "The copper kettle comes with a wicker birdcage, and the pair of them is your answer.",
    "The copper kettle, a wicker birdcage.",
    "I had the copper kettle on my list until somebody told me to strike it.",
    "Whether it was the copper kettle is anybody's guess.",
]


def ruled(answer: str) -> bool:
    gold = TextGold(answers=("the copper kettle",), values=(TermValue(text="the copper kettle"),))
    question = make_question("q1", Family.QA, gold, "What did Maya buy at the flea market?", evidence=["sess_1"])
    return judge_answer(question, [EVIDENCE], answer).correct


@pytest.mark.parametrize("answer", GIVES)
def test_answers_in_words_that_nothing_was_learned_from_give_their_value(answer: str) -> None:
    assert ruled(answer)


def test_an_offer_behind_a_picture_asks_nothing_about_the_value_before_it() -> None:
    assert ruled("The copper kettle \U0001f44d anything else?")
    assert not ruled("Hmm, was it the copper kettle?")


@pytest.mark.parametrize("answer", WITHHOLDS)
def test_a_value_that_is_guessed_taken_back_or_one_of_several_is_not_given(answer: str) -> None:
    assert not ruled(answer)


def test_rare_words_are_one_sign_and_words_of_the_matter_another() -> None:
    said = raw_words("The flea market had a Zqv and two wicker birdcages.")
    kept = wording(said, frozenset(("the", "a", "had", "and")), frozenset(("flea", "market")))
    assert kept == ["it", "had", "zqv", "and", "2", "zqx", "."]


def test_an_answer_brings_no_sign_of_its_own() -> None:
    kettle = TermValue(text="the copper kettle")
    case = Case(read_text("Zqv, zqx and maybe the copper kettle, ZQV."), read_text("What?"), [EVIDENCE], (kettle,))
    assert [word for word in raw_words(signed(case, ())) if word.startswith("zq")] == [VALUE]


def test_what_is_joined_to_a_value_weighs_against_it_and_a_plain_statement_for_it() -> None:
    alone = weigh(raw_words("It was Zqv."), NOTHING, "plain")
    assert alone > 0
    assert weigh(raw_words("It was Zqv, along with Zqx."), NOTHING, "plain") < 0 < alone


def test_the_stored_weights_are_those_that_the_texts_give() -> None:
    """But for the last digits, which depend on the machine."""
    learned, kept = learn(texts()), json.loads(read_file(WEIGHTS))
    assert learned["vocabulary"] == kept["vocabulary"]
    apart = [f for f, w in learned["features"].items() if abs(w - kept["features"].get(f, 0.0)) > 0.05]
    assert not apart
    assert len(learned["features"]) == pytest.approx(len(kept["features"]), rel=0.02)


def test_no_answer_of_these_tests_is_a_text_that_was_learned_from() -> None:
    learned = {" ".join(text.said) for text in texts()}
    assert learned
    assert not learned & {" ".join(raw_words(a.replace("the copper kettle", "Zqv"))) for a in GIVES + WITHHOLDS}
