"""Tests the extractive reader's answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.readers.extractive import UNKNOWN, WITHHELD, answer, date_text, kind_of, options, stretch
from memarena.readers.extractive_words import content_words
from memarena_answering import ContextItem, PromptParts
from memarena_dataset.values.mentions import PartialDate

ITEMS = (
    ContextItem("Ana: We met Bo in Porto last week.\nBo: I bought a red kayak. It was cheap!", "2025-01-06"),
    ContextItem("Cy: Do you know when the concert starts?\nAna: The concert starts at 20:30.\nCy: Fine."),
)


def ask(question: str, items: tuple[ContextItem, ...] = ITEMS, asked_by: str = "") -> str:
    return answer(PromptParts(items, question, "", asked_by)).answer


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Bo buy?", "I bought a red kayak."),
        ("Where did they meet Bo?", "We met Bo in Porto last week."),
        ("At what time does the concert start?", "20:30"),
        ("Who plays the zither?", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_answer_is_the_best_sentence_or_the_value_in_it(question: str, expected: str) -> None:
    assert ask(question) == expected


def test_an_empty_context_gives_no_answer() -> None:
    assert ask("What did Bo buy?", ()) == UNKNOWN


@pytest.mark.parametrize(
    "option_text",
    [
        "A) Paris\nB) Porto\nC) Rome",
        "(A) Paris (B) Porto (C) Rome",
        "A. Paris B. Porto C. Rome",
        "A: Paris, B: Porto, C: Rome",
        "Options:\n[A] Paris\n[B] Porto\n[C] Rome",
    ],
)
def test_of_lettered_options_the_best_supported_letter_is_the_answer(option_text: str) -> None:
    assert ask(f"Where did they meet Bo?\n{option_text}") == "B"


def test_unsupported_options_are_not_guessed() -> None:
    assert ask("Where did they meet Bo?\nA) Paris\nB) Rome") == UNKNOWN


def test_the_option_near_the_question_wins_over_one_that_is_merely_mentioned() -> None:
    items = (ContextItem("Ana: Rome is nice.\nAna: Rome again.\nAna: Bo lost his blue kayak in Porto."),)
    assert ask("Bo lost his blue kayak in ____.\nA) Rome\nB) Porto", items) == "B"


def test_options_are_removed_from_the_question() -> None:
    assert options("Which?\nA) x y\nB) z") == ("Which?\n", {"A": "x y", "B": "z"})
    assert options("Is plan A. good? I. e. now.") == ("Is plan A. good? I. e. now.", {})


TALKS = (
    ContextItem("Ana: I saw the new film yesterday.\nBo: I paid 40 euros for the kite.", "Tuesday 2025-01-07 18:03"),
    ContextItem("Dee: Last week we had a picnic.\nDee: We go camping next month.", "Friday 2025-01-10 20:00"),
    ContextItem("Dee: My train leaves at 7:26 am.\nDee: We row for 3 hours.\nDee: They fixed the boat on a Sunday.",
                "Saturday 2025-01-11 09:00"),
    ContextItem("Eve: My dentist is Mara Lund. I signed up for pottery."),
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Ana see the film?", "6 January 2025"),
        ("On what date did Ana see the film?", "6 January 2025"),
        ("When was the picnic of Dee?", "the week before 10 January 2025"),
        ("When does Dee go camping?", "February 2025"),
        ("When did Dee row?", "11 January 2025"),
        ("How much did Bo pay for the kite?", "40 euros"),
        ("At what time does the train of Dee leave?", "7:26 am"),
        ("How long did Dee row?", "3 hours"),
        ("On which day of the week did they fix the boat?", "Sunday"),
        ("Who is the dentist of Eve?", "Mara Lund"),
        ("When did Eve sign up for pottery?", "I signed up for pottery."),
    ],
)
def test_a_question_for_a_value_gets_only_the_value(question: str, expected: str) -> None:
    assert ask(question, TALKS) == expected


EVENING = (
    ContextItem(
        "[face to face, at Luna Café]\nEve: Hi Fay.\nFay: I bought a canoe.\nGus: It leaks.", "2025-01-07 18:03"
    ),
    ContextItem("[text message] Hal: Fay is a surgeon.\nEve: Is she?", "2025-01-08 09:10"),
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who else was present when Fay told me of her canoe?", "Gus"),
        ("Who told me that Fay is a surgeon?", "Hal"),
        ("Where did Fay tell me of her canoe?", "Luna Café"),
        ("By what means did I hear that Fay is a surgeon?", "text message"),
        ("When did Fay mention her canoe?", "7 January 2025"),
    ],
)
def test_of_a_conversation_the_answer_is_what_the_prompt_shows_around_it(question: str, expected: str) -> None:
    assert ask(question, EVENING) == expected


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did she go?", "date"),
        ("How many days did it take?", "duration"),
        ("How many cats are there?", "amount"),
        ("Which weekday was it?", "weekday"),
        ("Whose hat is it?", "proper"),
        ("Why did she go?", ""),
    ],
)
def test_the_kind_of_value_is_read_from_the_question(question: str, kind: str) -> None:
    assert kind_of(question) == kind


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (PartialDate(2023, 5, 7), "7 May 2023"),
        (PartialDate(2023, 6), "June 2023"),
        (PartialDate(2022), "2022"),
        (PartialDate(2023, 6, 9, "week before"), "the week before 9 June 2023"),
    ],
)
def test_a_date_is_written_as_far_as_it_is_known(day: PartialDate, expected: str) -> None:
    assert date_text(day) == expected


def test_what_somebody_else_said_of_themselves_is_not_known_of_whom_the_question_names() -> None:
    items = (ContextItem("Ana: After the race I saw that rest matters.\nBo: Good for you!", "2025-01-06"),)
    assert ask("What did Ana see after the race?", items) == "After the race I saw that rest matters."
    assert ask("What did Bo see after the race?", items) == UNKNOWN


def test_me_refers_to_the_speaker_of_each_item() -> None:
    items = (
        ContextItem("Ana: My bedroom is burgundy.\nBo: My bedroom is green, with a view."),
        ContextItem("Cy: Hello.\nBo: Hello to you."),
    )
    assert ask("What is the colour of my bedroom?", items) == "My bedroom is green, with a view."


def test_who_only_takes_up_what_is_asked_gives_no_answer() -> None:
    statement = "At the harbour auction I picked up a copper lamp."
    talk = ContextItem(
        f"Ana: So that's what Bo got at the harbour auction!\nBo: {statement}\nAna: Which harbour auction?"
    )
    assert ask("What did Bo get at the harbour auction?", (talk,)) == statement


def test_a_question_for_two_accounts_gets_both() -> None:
    talks = (ContextItem("Bo: I own 23 postcards."), ContextItem("Dee: Bo owns 42 postcards. I saw them."))
    both = ask("There are two accounts of how many postcards Bo owns: which?", talks)
    assert "23" in both
    assert "42" in both


def test_of_a_long_sentence_the_relevant_clauses_are_the_answer() -> None:
    question_stems = content_words("What does the necklace stand for?")
    text = "She gave it to me when I was young, the necklace stands for love and faith, you know"
    assert stretch(text, question_stems) == "the necklace stands for love and faith"
    assert stretch("Well, the necklace, a gift from gran", question_stems) == "Well, the necklace, a gift from gran"
    assert stretch("Nothing of it, at all", question_stems) == "Nothing of it, at all"


@pytest.mark.parametrize(
    ("after", "asked_by", "expected"),
    [
        ("Please keep it to yourself.", "Bo Ray, friend of the owner", False),
        ("Please don't tell anybody.", "an unknown person", False),
        ("Please keep it to yourself.", "the owner of this device", True),
        ("Only my friends may know that, not strangers.", "Bo Ray, friend of the owner", True),
        ("Only my friends may know that, not strangers.", "an unknown person", False),
        ("You can tell anybody, it is no secret.", "an unknown person", True),
        ("It rained.", "an unknown person", True),
    ],
)
def test_a_confidence_is_answered_to_the_owner_only(after: str, asked_by: str, expected: bool) -> None:
    items = (ContextItem(f"Ana: The code of my alarm is kiwi. {after}"),)
    answer = ask("What is the code of Ana's alarm?", items, asked_by)
    assert answer == ("The code of my alarm is kiwi." if expected else WITHHELD)


def test_no_account_of_several_is_told_to_whom_it_was_kept_from() -> None:
    items = (ContextItem("Ana: Bo owns 42 postcards."), ContextItem("Cy: Bo owns 23 postcards. Keep it to yourself."))
    question = "Which two accounts are there of how many postcards Bo owns?"
    assert ask(question, items, "an unknown person") == WITHHELD
    assert "23" in ask(question, items, "the owner of this device")


@given(texts=st.lists(st.text(), max_size=5), question=st.text())
def test_any_text_gives_the_same_answer_twice(texts: list[str], question: str) -> None:
    parts = PromptParts(tuple(ContextItem(text) for text in texts), question, "", "")
    first = answer(parts)
    assert first == answer(parts)
    assert json.loads(first.as_json())["answer"] == first.answer
