"""What stands before a value in so many words, or beside it as a way of speaking, does not make it a wrong answer."""

from __future__ import annotations

import pytest
from memarena.dataset.gold import CounterfactualGold, Gold, TextGold
from memarena.dataset.model import Family
from memarena.dataset.values import AmountValue, NameValue, TermValue, TimeValue
from memarena.judge import judge_answer
from memarena.judge.value_settling import settles, without_denied
from memarena.judge.value_wording import raw_words

from ..support.logs import make_evidence, make_question

EVIDENCE = make_evidence("sess_1", ("Maya Chen", "The tent cost me 52 euros."), ("Ines Okafor", "Honestly? A bargain."))
PRICE = TextGold(answers=("52 euros",), values=(AmountValue(amount=52, unit="euros"),))
THING = TextGold(answers=("a copper kettle",), values=(TermValue(text="a copper kettle"),))
NAME = TextGold(answers=("Ms. Ray",), values=(NameValue(name="Ray", aliases=("Ms. Ray",)),))
TIMES = CounterfactualGold(
    real_fact="leaves at 16:22",
    altered_detail="7:21 p.m.",
    values=(TimeValue(time="16:22"),),
    altered_values=(TimeValue(time="19:21"),),
)


def ruled(gold: Gold, answer: str, family: Family = Family.QA, asked: str = "How much did the tent cost?") -> str:
    ruling = judge_answer(make_question("q1", family, gold, asked, evidence=["sess_1"]), [EVIDENCE], answer)
    return "" if ruling.correct else ruling.reason


@pytest.mark.parametrize(
    ("said", "settled"),
    [
        ("2 candidates came up. zqo belongs to another matter. The one that answers your question is zqv.", True),
        ("The correct value is zqv.", True),
        ("zqv is the answer. I leave the rest out.", True),
        ("Final answer: zqv", True),
        ("The answer is zqo. The answer is zqv.", False),
        ("zqo is what I found. The answer is zqv.", False),
        ("The answer is zqv. Or rather zqo.", False),
        ("The answer is zqv if you ask Maya.", False),
        ("The answer is zqv, or is it?", False),
        ("The answer is not zqv.", False),
        ("The answer is probably zqv.", False),
        ("The answer is zqv. Scratch that, I misread it.", False),
        ("Maya bought zqv.", False),
    ],
)
def test_a_sentence_that_says_which_is_the_answer_settles_what_came_before(said: str, settled: bool) -> None:
    assert settles(raw_words(said)) is settled


def test_only_a_rival_behind_the_value_and_behind_not_is_left_out_of_the_weighing() -> None:
    assert without_denied(raw_words("It was zqv and not as dr. zqo, in case.")) == raw_words("It was zqv, in case.")
    for kept in ("It was zqv and zqo.", "Not zqo but zqv.", "It was zqv, not zqo or zqo."):
        assert without_denied(raw_words(kept)) == raw_words(kept)


@pytest.mark.parametrize(
    "answer",
    [
        "Let me take you back for a second. Maya talked of this and that. One detail counts, though: 52 euros.",
        "I read the old messages two times to be safe. The information is 52 euros.",
        "I went through the snippets. Snippets 1 and 2 are greetings, snippet 3 has it: 52 euros.",
        "52 euros [1]",
        "Retrieved context (1 of 1) points clearly to 52 euros.",
        "Not 53 euros, as one might think, but 52 euros.",
        "Hm, 52 euros.",
        "HUD> 52 euros",
        "1. I searched.\n2. It dates from January 3.\n3. It says 52 euros.\n\nHence: 52 euros.",
        "Elsewhere, in a clear sentence, it is 52 euros.",
        "My note says 52 euros, and it still stands today.",
        "I give you 52 euros.",
    ],
)
def test_ways_of_speaking_and_marks_of_pieces_are_no_rivals(answer: str) -> None:
    assert ruled(PRICE, answer) == ""
    assert ruled(PRICE, answer.replace("52", "58")) != ""


@pytest.mark.parametrize(
    "answer",
    [
        "A copper kettle. And also a brass lamp.",
        "A brass lamp/copper kettle",
        "Apart from a copper kettle, the talk also names a brass lamp.",
        "Not only a copper kettle but also a brass lamp.",
        "Anyone who tells you a copper kettle has misread it.",
        "The first note gave a copper kettle. This has since been retracted.",
        "It is a copper kettle, except that it isn't.",
    ],
)
def test_a_thing_beside_others_or_taken_back_is_no_answer(answer: str) -> None:
    assert ruled(THING, answer, asked="What did Maya buy?") != ""


def test_a_premise_given_as_the_answer_is_none_put_right() -> None:
    asked = "Suppose the train leaves at 7:21 p.m. Is that accurate, and what would be correct?"
    said = "The question says 7:21 p.m. The memory says 16:22. So {} is the answer."
    assert "premise" in ruled(TIMES, said.format("7:21 p.m."), Family.COUNTERFACTUAL, asked)
    assert ruled(TIMES, said.format("16:22"), Family.COUNTERFACTUAL, asked) == ""
    assert ruled(TIMES, "Instead of 7:21 p.m. please read 16:22.", Family.COUNTERFACTUAL, asked) == ""
    agrees = "I would love to agree with you, but I can't. Maya was clear. It was 16:22, and your 7:21 p.m. is wrong."
    assert ruled(TIMES, agrees, Family.COUNTERFACTUAL, asked) == ""
    assert ruled(TIMES, "The premise holds: 7:21 p.m. The notes have 16:22.", Family.COUNTERFACTUAL, asked) != ""


@pytest.mark.parametrize(
    ("answer", "declines"),
    [
        (
            "I can give you a clear reply. You may think of Ms. Lee, but that isn't what was said. It says Ms. Ray.",
            False,
        ),
        ("You may think of Ms. Lee, but that isn't what was said. The message from Maya has Ms. Ray.", False),
        ("The missing detail is Ms. Ray.", False),
        ("You won't need to ask Maya again: it's Ms. Ray.", False),
        ("I don't know. Ask Ms. Ray.", True),
        ("That is between Maya and Ms. Ray, so I won't say.", True),
    ],
)
def test_an_answer_that_gives_its_value_does_not_decline(answer: str, declines: bool) -> None:
    ruling = ruled(NAME, answer, asked="Who drives Maya to the clinic?")
    assert (ruling != "") is declines, ruling
