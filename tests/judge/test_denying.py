"""A value whose last mention is denied is no answer, however much else is said around it."""

from __future__ import annotations

import pytest
from memarena.dataset.gold import Gold, TextGold
from memarena.dataset.model import Family
from memarena.dataset.values import AmountValue, NameValue
from memarena.judge import judge_answer
from memarena.judge.value_denying import denies_in_the_end
from memarena.judge.value_wording import raw_words

from ..support.logs import make_evidence, make_question

EVIDENCE = make_evidence("sess_1", ("Maya Chen", "The tent cost me 52 euros."), ("Ines Okafor", "Honestly? A bargain."))
PRICE = TextGold(answers=("52 euros",), values=(AmountValue(amount=52, unit="euros"),))
NAME = TextGold(answers=("Ms. Ray",), values=(NameValue(name="Ray", aliases=("Ms. Ray",)),))
DENIED = (
    "V is definitely not the answer.",
    "V is not the answer.",
    "V isn't right.",
    "Yes, V! At least that is what I thought. I read it again, and V is not what was said.",
    "I thought of V, but V isn't it.",
    "V was never mentioned.",
    "It's tempting to say V. However, V is wrong.",
    "V can't be correct.",
    "Nobody ever named V, and do not believe anyone who claims it was V.",
    "None of the notes mention V.",
    "Nothing in the chat supports V.",
    "No message says it was V.",
    "The notes have V. On a second look, V is clearly incorrect.",
    "V does not appear anywhere in the chat.",
    "It is not V.",
)
HELD = (
    "It's V.",
    "V, and V is not in doubt.",
    "Nothing contradicts V.",
    "It's V. V is not what you assumed, but that is what was said.",
    "There's no doubt that V is the answer.",
    "V was not changed later.",
    "V is not only the answer but was confirmed twice.",
    "Nobody said anything other than V.",
    "It was V and it did not change.",
    "You do not have to trust me, but it is V.",
    "No need to look it up: V.",
    "No, it was V.",
    "V is not the first thing you asked about, I know.",
)


@pytest.mark.parametrize("said", DENIED)
def test_denied_in_the_end(said: str) -> None:
    assert denies_in_the_end(raw_words(said.replace("V", "zqv")))


@pytest.mark.parametrize("said", HELD)
def test_not_denied(said: str) -> None:
    assert not denies_in_the_end(raw_words(said.replace("V", "zqv")))


@pytest.mark.parametrize("said", DENIED)
@pytest.mark.parametrize(("gold", "value"), [(PRICE, "52 euros"), (NAME, "Ms. Ray")])
def test_what_is_denied_in_the_end_is_wrong(gold: Gold, value: str, said: str) -> None:
    question = make_question("q1", Family.QA, gold, "What was it?", evidence=["sess_1"])
    assert not judge_answer(question, [EVIDENCE], said.replace("V", value)).correct
