"""Tests D1 (multiple choice): an answer chooses one option, by letter or text, in all the forms that models use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.judging import Judgment, judge
from memarena.judging.kinds.cloze import chosen_option
from memarena_dataset.gold import ClozeGold
from memarena_dataset.model import Family

from ..support.logs import cloze, make_question

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
DRINKS = ("the blue mug", "tea", "green tea", "Vitamin D", "a book")


def judged(gold: ClozeGold, answer: str) -> Judgment:
    return judge(make_question("q1", Family.CLOZE, gold, "Which?"), [], answer, answer)


CHOICES = [
    *(
        (DAYS, form, "B")
        for form in ("B", "b", "B)", "b)", "(B)", "[B]", "B.", " B ", "**B**", "<B>", "Option B", "option b")
    ),
    *(
        (DAYS, form, "B")
        for form in ("B) Tuesday", "B. Tuesday", "B: Tuesday", "B - Tuesday", "(b) tuesday.", "B, Tuesday")
    ),
    *((DAYS, form, "B") for form in ("Tuesday", "tuesday.", "It is Tuesday", "Tuesday (B)", "**B) Tuesday**")),
    *(
        (DAYS, form, "B")
        for form in ("The answer is B.", "The correct answer is (B) Tuesday.", "answer: b", "Answer: B")
    ),
    *((DAYS, form, "B") for form in ('{"answer": "B"}', '{"answer": "B) Tuesday", ', '```json\n{"answer": "B"}\n```')),
    *(
        (DAYS, form, "A")
        for form in (
            "Probably A.",
            "Definitely A!",
            "I believe A is correct.",
            "That makes it A, the Monday.",
            "It is an A.",
        )
    ),
    (DAYS, "It can't be A, B or C, which leaves D: Thursday.", "D"),
    (DAYS, "I have ruled out A, B, C and D, so it must be E.", "E"),
    (DAYS, "The answer: E. A is Wen's.", "E"),
    (DAYS, "Is it A? No, E.", "E"),
    (DAYS, "I think B", "B"),
    (DAYS, "I think it's B because she said so", "B"),
    (DAYS, "I'd go with B", "B"),
    (DAYS, "Definitely B!", "B"),
    (DAYS, 'The word that fills the blank is "Tuesday".', "B"),
    (DAYS, "B\n\nReason: Tuesday was mentioned", "B"),
    (DAYS, "B, not C", "B"),
    (DAYS, "Not A, C, D or E. It is B.", "B"),
    (DAYS, "That rules out Monday (A), Wednesday (C) and Thursday (D). B is left.", "B"),
    (DAYS, "Ruling out A, C and E, the letter is B.", "B"),
    (DAYS, "Tuesday, not Wednesday", "B"),
    (DAYS, "It's Tuesday. Not Monday.", "B"),
    (DAYS, "B. She moved it from Monday to Tuesday.", "B"),
    (DAYS, "The answer is B. She moved it from Monday to Tuesday.", "B"),
    *((DAYS, form, "A") for form in ("A", "a", "A)", "The answer is A", "The answer is a.", "Option A: Monday")),
    (DRINKS, "green tea", "C"),
    (DRINKS, "Tea", "B"),
    (DRINKS, "Vitamin D", "D"),
    (DRINKS, "D", "D"),
    (DRINKS, "A blue mug", "A"),
    (DRINKS, "A. Blue mug", "A"),
    (DRINKS, "a book", "E"),
    (DRINKS, "E) a book", "E"),
]

NO_CHOICE = [
    *(
        (DAYS, form)
        for form in ("B or C", "B and C", "Either B or C", "Tuesday or Wednesday", "Monday, Tuesday, Wednesday")
    ),
    *((DAYS, form) for form in ("B) Tuesday or Wednesday", "B. It could also be Wednesday.", "B. Or maybe C.")),
    *((DAYS, form) for form in ("B) Wednesday", "C) Tuesday", "It's Wednesday, so the answer is B", "F) Tuesday")),
    *(
        (DAYS, form)
        for form in (
            "A) Monday B) Tuesday C) Wednesday",
            "A B C D E",
            "Tuesday. Wednesday.",
            "B) Tuesday\nC) Wednesday",
        )
    ),
    *(
        (DAYS, form)
        for form in ("", "   ", "I don't know", "A good question", "F", "I", "Saturday", "It's not B", "not Tuesday")
    ),
    (DRINKS, "tea and green tea"),
    (DRINKS, "She took Vitamin D with tea"),
]


@pytest.mark.parametrize(("options", "answer", "letter"), CHOICES)
def test_a_choice_is_recognised_in_its_usual_forms(options: tuple[str, ...], answer: str, letter: str) -> None:
    assert chosen_option(answer, options).letter == letter


@pytest.mark.parametrize(("options", "answer"), NO_CHOICE)
def test_two_choices_a_contradiction_or_no_option_are_no_choice(options: tuple[str, ...], answer: str) -> None:
    assert chosen_option(answer, options).letter is None


def test_the_reason_names_the_chosen_and_the_right_option() -> None:
    for answer, right, why in (
        ("B) Tuesday", True, "chooses B (letter and text)"),
        ("C", False, "chooses C (letter), right is B"),
        ("B) Friday", False, "letter B and another option's text, right is B"),
    ):
        judgment = judged(cloze("B", *DAYS), answer)
        assert (judgment.correct, judgment.why, judgment.route) == (right, why, "exact_match")


@given(
    right=st.integers(0, 4),
    other=st.integers(0, 4),
    form=st.sampled_from(["{}", "({})", "{})", "Option {}", "The answer is {}."]),
)
def test_no_form_of_a_letter_counts_as_another_letter(right: int, other: int, form: str) -> None:
    gold = cloze(chr(ord("A") + right), *DAYS)
    assert judged(gold, form.format(chr(ord("A") + other))).correct is (right == other)


@given(st.text(max_size=120))
def test_any_text_chooses_one_option_or_none(answer: str) -> None:
    assert chosen_option(answer, DAYS).letter in (None, "A", "B", "C", "D", "E")


PETS = ("a grey parrot", "the blind terrier", "two goldfish", "a tortoise", "the neighbour's tomcat")
WALKED_THROUGH = [
    (
        "A) a grey parrot: that is Ruben's. B) the blind terrier: she took this home. C) two goldfish: no trace. So B.",
        "B",
    ),
    ("A came up for Ruben, C came up in spring, and E lives next door. E it is.", "E"),
    ("I wavered between B and E for a while, but the transcript names D.", "D"),
    ("A: wrong. B: wrong, too. D is ruled out and E is not hers. One is left.", "C"),
    ("A: not in the chats\nB: not in the chats\nC: not in the chats\nD: confirmed on Sunday\nE: not in the chats", "D"),
    ("The parrot and the terrier were never yours; the tortoise is what you told me about.", "D"),
    ("Of A and E, only the second is backed by the messages, therefore E.", "E"),
    ("D. Options A, B, C and E do not occur.", "D"),
    ("My first idea was A. Reading on, it turns out that it's D.", "D"),
    ("C might look right, yet nobody says so. D is what she says.\n\nD", "D"),
]
STILL_OPEN = [
    "A: wrong. B: wrong. D is ruled out and E is not hers. None is left.",
    "A: wrong. B: wrong. So C, D or E is left.",
    "A came up for Ruben and E lives next door. Is it A or E?",
    "A: could be. D: could be. E: no trace. So A or D.",
    "A was mentioned, and D was mentioned.",
    "I went through A, B, C, D and E and none is backed by the messages.",
    "It's D, or else B.",
    "A grey parrot. Two goldfish.",
]


@pytest.mark.parametrize(("answer", "letter"), WALKED_THROUGH)
def test_discussing_all_options_and_then_choosing_is_one_choice(answer: str, letter: str) -> None:
    assert chosen_option(answer, PETS).letter == letter


@pytest.mark.parametrize("answer", STILL_OPEN)
def test_discussing_all_options_without_choosing_is_no_choice(answer: str) -> None:
    assert chosen_option(answer, PETS).letter is None


TEACHERS = ("Mira Holt", "Otto Brandt", "Lena Fry", "Karl Voss", "Ida Moor")


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("Your teacher is Otto Brandt; Lena Fry instructs Pablo.", "B"),
        ("Answer: B (Otto Brandt). I also considered C, but Lena Fry is taken by Pablo.", "B"),
        ("Holt, Fry and Moor teach nothing of the kind and Voss coaches the rowers, therefore B.", "B"),
        ("None of them; B comes closest but isn't right.", None),
    ],
)
def test_options_of_other_people_or_only_considered_are_not_chosen(answer: str, letter: str | None) -> None:
    assert chosen_option(answer, TEACHERS, question="____ teaches me pottery.").letter == letter


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("Mira Holt? No. Otto Brandt? He coaches rowing. Lena Fry? Yes. Karl Voss? Sailing. Ida Moor? No.", "C"),
        ("Mira Holt? He coaches rowing. Otto Brandt? Sailing, I believe. Lena Fry? Chess.", None),
        ("Ida Moor runs the choir, and Karl Voss has the kiln key. Pottery is what Lena Fry does.", "C"),
        ("Pottery is with Lena Fry or Ida Moor.", None),
    ],
)
def test_options_discussed_as_questions_and_clauses_with_the_questions_words(answer: str, letter: str | None) -> None:
    assert chosen_option(answer, TEACHERS, question="____ teaches me pottery.").letter == letter
