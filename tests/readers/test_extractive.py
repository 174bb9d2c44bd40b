"""The extractive reader's choice of a sentence."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.readers import data_files
from memarena.readers.extractive import UNKNOWN, WITHHELD, answer, content_words, options, read, sentences, stem
from memarena.readers.extractive_dates import day_meant
from memarena.readers.extractive_question import asked_of
from memarena.readers.extractive_related import related
from memarena_answering import (
    Asker,
    ContextItem,
    Message,
    PromptParts,
    PromptStyle,
    ReadingPlan,
    build_prompt,
    count_by_bytes,
    parse_answer,
)

ITEMS = (
    ContextItem("Ana: We met Bo in Porto last week.\nBo: I bought a red kayak. It was cheap!", "2025-01-06"),
    ContextItem("Cy: Do you know when the concert starts?\nAna: The concert starts at 20:30.\nCy: Fine."),
)


def ask(question: str, items: tuple[ContextItem, ...] = ITEMS) -> str:
    return answer(PromptParts(items, question, "", "")).answer


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Bo buy?", "Bo: I bought a red kayak."),
        ("Where did they meet Bo?", "Ana: We met Bo in Porto last week."),
        ("When does the concert start?", "Ana: The concert starts at 20:30."),
        ("Who plays the zither?", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_best_sentence_is_given_with_its_speaker(question: str, expected: str) -> None:
    assert ask(question) == expected


def test_an_empty_context_knows_nothing() -> None:
    assert ask("What did Bo buy?", ()) == UNKNOWN


@pytest.mark.parametrize(
    "shown",
    [
        "A) Paris\nB) Porto\nC) Rome",
        "(A) Paris (B) Porto (C) Rome",
        "A. Paris B. Porto C. Rome",
        "A: Paris, B: Porto, C: Rome",
        "Options:\n[A] Paris\n[B] Porto\n[C] Rome",
    ],
)
def test_of_lettered_options_the_best_supported_letter_is_given(shown: str) -> None:
    assert ask(f"Where did they meet Bo?\n{shown}") == "B"


def test_options_that_nothing_supports_are_not_guessed() -> None:
    assert ask("Where did they meet Bo?\nA) Paris\nB) Rome") == UNKNOWN


def test_the_option_near_the_question_wins_over_one_that_is_merely_mentioned() -> None:
    items = (ContextItem("Ana: Rome is nice.\nAna: Rome again.\nAna: Bo lost his blue kayak in Porto."),)
    assert ask("Bo lost his blue kayak in ____.\nA) Rome\nB) Porto", items) == "B"


def test_options_are_taken_off_the_question() -> None:
    assert options("Which?\nA) x y\nB) z") == ("Which?\n", {"A": "x y", "B": "z"})
    assert options("Is plan A. good? I. e. now.") == ("Is plan A. good? I. e. now.", {})


@pytest.mark.parametrize(
    "forms", [("buy", "bought", "buying", "buys"), ("plan", "planned", "planning", "plans"), ("city", "cities"),
              ("bake", "baked", "baking"), ("box", "boxes"), ("walk", "walked"), ("child", "children")]
)  # fmt: skip
def test_forms_of_a_word_meet(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_function_words_carry_nothing() -> None:
    assert content_words("What is it that they were doing with the?") == frozenset()


def test_sentences_keep_their_speaker_and_their_marks() -> None:
    found = [
        each.text for each in sentences([ContextItem('Ana: One. Two? "Three!" Four\nno speaker here\n東京。大阪。')])
    ]
    assert found == ["Ana: One.", 'Ana: Two? "Three!"', "Ana: Four", "no speaker here", "東京。", "大阪。"]


@pytest.mark.parametrize("style", list(PromptStyle))
@pytest.mark.parametrize("no_system_role", [False, True])
def test_our_own_prompts_are_read_in_every_form(style: PromptStyle, no_system_role: bool) -> None:
    plan = ReadingPlan("m", 64, style=style, no_system_role=no_system_role)
    prompt = build_prompt(ITEMS, "What did Bo buy?", "2025-01-07", Asker("owner"), plan, count_by_bytes)
    parsed = parse_answer(answer(read(prompt.messages)).as_json())
    assert (parsed.answer, parsed.parse) == ("Bo: I bought a red kayak.", "json")
    assert "red kayak" in parsed.reason


def test_prompts_of_others_are_read_by_their_last_question() -> None:
    text = "Here is what we know.\nBo bought a red kayak.\nWhat did Bo buy?\nReply briefly."
    assert answer(read([Message("system", "Be kind?"), Message("user", text)])).answer == "Bo bought a red kayak."
    assert answer(read([])).answer == UNKNOWN


@given(texts=st.lists(st.text(), max_size=5), question=st.text())
def test_any_text_gives_the_same_answer_twice_and_it_stands_in_the_context(texts: list[str], question: str) -> None:
    items = tuple(ContextItem(text) for text in texts)
    first = answer(PromptParts(items, question, "", ""))
    assert first == answer(PromptParts(items, question, "", ""))
    assert json.loads(first.as_json())["answer"] == first.answer
    allowed = {each.text for each in sentences(items)} | {UNKNOWN} | set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert first.answer in allowed


def test_the_lexicons_are_named_with_their_hashes() -> None:
    hashes = data_files()
    assert sorted(hashes) == [
        "memarena/readers/lexicons/irregular.v1.txt",
        "memarena/readers/lexicons/kindred.v1.txt",
        "memarena/readers/lexicons/kinds.v1.txt",
        "memarena/readers/lexicons/questions.v1.txt",
        "memarena/readers/lexicons/related.v1.txt.gz",
        "memarena/readers/lexicons/requests.v1.txt",
        "memarena/readers/lexicons/sharing.v1.txt",
        "memarena/readers/lexicons/stopwords.v1.txt",
    ]
    assert all(len(digest) == 64 for digest in hashes.values())


TALKS = (
    ContextItem("[face to face, at Luna Café]\nAna: I saw the new film yesterday.\nBo: I paid 40 euros for the kite.",
                "Tuesday 2025-01-07 18:03"),
    ContextItem("[text message] Cy: The kite set Bo back 55 euros, I swear.", "Thursday 2025-01-09 09:10"),
    ContextItem("Dee: On Monday I sold the old boat.\nDee: My train leaves at 7:26 am.", "Friday 2025-01-10 20:00"),
    ContextItem("Dee: There is a change, my train leaves at 8:11 am now.", "Sunday 2025-01-12 10:00"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Ana see the film?", "January 6, 2025"),
        ("On which date did Bo mention what the kite cost in euros?", "January 7, 2025"),
        ("On what day did Dee sell the boat?", "January 6, 2025"),
        ("Where were you when Ana told you about the film?", "Luna Café"),
        ("By what means did Cy tell me about the kite?", "text message"),
        ("Who told me what the kite set Bo back?", "Cy"),
        ("How many days lie between the day Ana saw the film and the day Cy swore about the kite?", "3 days"),
        ("What are the two versions of what Bo paid for the kite?",
         "I paid 40 euros for the kite. But The kite set Bo back 55 euros, I swear."),
        ("At what time does the train of Dee leave at present?",
         "Dee: There is a change, my train leaves at 8:11 am now."),
        ("At what time did the train of Dee originally leave?", "Dee: My train leaves at 7:26 am."),
        ("When does the train of Dee leave?", "Dee: My train leaves at 7:26 am."),
    ],
)  # fmt: skip
def test_what_the_prompt_shows_around_the_words_answers_when_where_and_who(question: str, expected: str) -> None:
    assert ask(question, TALKS) == expected


def test_things_are_put_in_the_order_of_their_days() -> None:
    question = "In which order did these happen: Dee sold the boat; Ana saw the film; Cy swore about the kite?"
    items = (
        ContextItem("Ana: I saw the film three days ago.", "2025-01-07"),
        ContextItem("Cy: I swore about the kite.", "2025-01-09"),
        ContextItem("Dee: I sold the boat on January 6.", "2025-01-10"),
    )
    assert ask(question, items) == "Ana saw the film; Dee sold the boat; Cy swore about the kite"


def test_a_sentence_that_the_question_quotes_is_not_its_answer() -> None:
    items = (ContextItem("Ana: I got a brass bell at the fair.\nAna: The thing from the fair? I gave it to a museum."),)
    question = 'Ana said of a thing from the fair: "I gave it to a museum". Which thing?'
    assert ask(question, items) == "Ana: I got a brass bell at the fair."


def test_titles_do_not_end_a_sentence() -> None:
    assert ask("Who sees to the knee?", (ContextItem("Ana: Dr. Hollis sees to the knee."),)) == (
        "Ana: Dr. Hollis sees to the knee."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went yesterday", "2025-01-07"),
        ("the day before yesterday it rained", "2025-01-06"),
        ("that was last Friday", "2025-01-03"),
        ("on Wednesday", "2025-01-01"),
        ("I will go on Friday", "2025-01-10"),
        ("two weeks ago", "2024-12-25"),
        ("on December 30", "2024-12-30"),
        ("on 3 March, 2024", "2024-03-03"),
        ("February 31", None),
        ("nothing of the sort", None),
    ],
)
def test_days_are_meant_from_the_day_on_which_they_are_said(text: str, expected: str | None) -> None:
    found = day_meant(text, date(2025, 1, 8))
    assert (found.isoformat() if found else None) == expected


def test_who_only_takes_up_what_is_asked_gives_no_answer() -> None:
    told = "At the harbour auction I picked up a copper lamp."
    talk = ContextItem(f"Ana: The harbour auction, of all places!\nBo: {told}")
    assert ask("What did Bo get at the harbour auction?", (talk,)) == f"Bo: {told}"
    asked = ContextItem("Ana: And your trick for the stew?\nBo: My trick for the stew? Nutmeg, and no salt.")
    assert ask("What is the trick for the stew?", (asked,)) == "Bo: My trick for the stew? Nutmeg, and no salt."


def test_a_second_version_is_one_that_says_something_else() -> None:
    talks = (
        ContextItem("Bo: I own 23 postcards, a bit of an illness."),
        ContextItem("Cy: Bo counted the postcards, 23 of them.\nAna: Ah, how many postcards Bo owns, good to know."),
        ContextItem("Dee: In all, 42 postcards, so many does Bo own."),
    )
    both = ask("What are the two versions of how many postcards Bo owns?", talks)
    assert "23" in both
    assert "42" in both


EVENING = (
    ContextItem(
        "[face to face, at Luna Café]\nEve: Hi Fay, you look well.\nFay: I bought a canoe for 300 euros, Gus."
        "\nGus: The canoe? I bet it leaks.\nEve's assistant: Noted.",
        "Tuesday 2025-01-07 18:03",
    ),
    ContextItem("[text message] Gus: Fay is a surgeon in Dover.\nEve: My bedroom is burgundy now, I like it.",
                "Wednesday 2025-01-08 09:10"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who else was present when Fay told me what the canoe cost?", "Gus"),
        ("Who told me what Fay does as a physician?", "Gus"),
        ("What price did Fay pay for her boat?", "Fay: I bought a canoe for 300 euros, Gus."),
        ("Can you tell me which colour my bedroom has?", "Eve: My bedroom is burgundy now, I like it."),
        ("Is it correct that the canoe cost Fay 200 euros? If not, correct it.",
         "Fay: I bought a canoe for 300 euros, Gus."),
    ],
)  # fmt: skip
def test_people_kinds_of_answers_and_other_words_lead_to_the_sentence(question: str, expected: str) -> None:
    assert ask(question, EVENING) == expected


def test_who_speaks_of_themselves_comes_before_who_is_not_asked_about() -> None:
    items = (ContextItem("Ana: I live in Hull, by the sea.\nBo: I live in Leeds, up the hill.", "2025-01-06"),)
    assert ask("Where does Bo Lind live?", items) == "I live in Leeds, up the hill."


@pytest.mark.parametrize(
    ("question", "people"),
    [
        ("Is Ana Reed a surgeon?", {"ana"}),
        ("Did Bo Lind and Ana Reed meet?", {"bo", "ana"}),
        ("Ana Reed moved. Will Bo Lind follow?", {"ana", "bo"}),
        ("Where did Will Reed move?", {"will"}),
    ],
)
def test_the_first_word_of_a_question_is_no_name(question: str, people: set[str]) -> None:
    assert asked_of(question, "", frozenset()).people == people


@pytest.mark.parametrize("speaker", ["Ana Reed", r"Ana \g<0> \1"])
def test_in_a_list_of_people_me_is_who_says_it(speaker: str) -> None:
    items = (ContextItem(f"{speaker}: Bo, Cy and me, that is the whole chess club."),)
    assert ask("Which people make up the chess club?", items) == f"Bo, Cy and {speaker}, that is the whole chess club."


def test_a_thing_that_a_later_sentence_only_points_at_is_found_where_it_was_named() -> None:
    items = (
        ContextItem("Ana: At the pier auction I got a brass bell.\nAna: At the school fair I got a tin drum."),
        ContextItem("Ana: The thing from the pier auction? I lent it to a ferryman."),
    )
    assert (
        ask("Ana lent it to a ferryman: which object is meant?", items)
        == "Ana: At the pier auction I got a brass bell."
    )


@pytest.mark.parametrize(
    ("word", "other"), [("physician", "doctor"), ("spectacles", "glasses"), ("wedding", "marriage"), ("tint", "colour")]
)
def test_words_that_mean_nearly_the_same_are_related_both_ways(word: str, other: str) -> None:
    assert related(stem(word), [stem(other)])
    assert related(stem(other), [stem(word)])


def test_one_related_word_alone_is_no_answer() -> None:
    items = (ContextItem("Ana: The doctor had a nice garden.\nBo: It rained on the tent all night."),)
    assert ask("Which physician cured the measles of Dee Ray in Rome?", items) == UNKNOWN


@pytest.mark.parametrize(
    ("after", "asked_by", "expected"),
    [
        ("Please keep it to yourself.", "Bo Ray, friend of the owner", False),
        ("Please keep it to yourself.", "the owner of this device", True),
        ("Only my friends may know that, not strangers.", "Bo Ray, friend of the owner", True),
        ("Only my friends may know that, not strangers.", "an unknown person", False),
        ("Only my friends may know that, not strangers.", "Dee Ray, sister of the owner", True),
        ("Only my friends may know that, not strangers.", "Dee Ray, friend of a friend of the owner", False),
        ("Only my friends may know that, not strangers.", "Dee Friend, colleague of the owner", False),
        ("You can tell anybody, it is no secret.", "an unknown person", True),
        ("It rained.", "an unknown person", True),
    ],
)
def test_who_was_ruled_out_is_not_told(after: str, asked_by: str, expected: bool) -> None:
    items = (ContextItem(f"Ana: The code of my alarm is 3456. {after}"),)
    found = answer(PromptParts(items, "What is the code of Ana's alarm?", "", asked_by)).answer
    assert found == ("Ana: The code of my alarm is 3456." if expected else WITHHELD)


def test_no_sentence_of_several_is_told_to_whom_it_was_kept_from() -> None:
    items = (
        ContextItem("Ana: Bo owns 42 old postcards in all."),
        ContextItem("Cy: Bo has 23 postcards. Please keep it to yourself."),
    )
    question = "What are the two versions of how many old postcards Bo owns in all?"
    assert answer(PromptParts(items, question, "", "an unknown person")).answer == WITHHELD
    told = answer(PromptParts(items, question, "", "the owner of this device")).answer
    assert "42" in told
    assert "23" in told
