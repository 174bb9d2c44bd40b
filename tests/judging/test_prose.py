"""Tests answers in prose of real models: edits, self-corrections, tags, unit conversions, other people's values."""

from __future__ import annotations

import pytest
from memarena.judging.kinds import judge
from memarena.judging.typed_value.plain_text import plain_text
from memarena_dataset.gold import CounterfactualGold, Gold, TextGold
from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue, TimeValue

from ..support.logs import make_evidence, make_question

TURNS = [
    ("Uma Mensah", "My ferry is at 7:20 am, and I hiked 12.9 miles to it."),
    ("Lev Stone", "My ferry goes at 6:50 am."),
]
PREMISE = CounterfactualGold(
    real_fact="7:20 am",
    altered_detail="8:40 am",
    values=(TimeValue(time="07:20"),),
    altered_values=(TimeValue(time="08:40"),),
)
FERRY = TextGold(answers=("7:20 am",), values=(TimeValue(time="07:20"),))
HIKE = TextGold(answers=("12.9 miles",), values=(AmountValue(amount=12.9, unit="miles"),))


def correct(question: str, gold: Gold, family: Family, answer: str) -> bool:
    question_record = make_question("q1", family, gold, question, evidence=["sess_1"], asker_name="Uma Mensah")
    question_record = question_record.model_copy(update={"ego_name": "Uma Mensah"})
    return judge(question_record, [make_evidence("sess_1", *TURNS)], answer, answer).correct


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ('Swap "8:40 am" for "7:20 am".', True),
        ("Amend 8:40 am so that it reads, correctly, to 7:20 am.", True),
        ("8:40 am ought to be 7:20 am.", True),
        ('Swap "7:20 am" for "8:40 am".', False),
    ],
)
def test_an_edit_replaces_the_altered_value_by_the_real_one(answer: str, right: bool) -> None:
    question = "My ferry is at 8:40 am, I gather. Please correct that where needed."
    assert correct(question, PREMISE, Family.COUNTERFACTUAL, answer) is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        # The answer corrects itself.
        ("6:50 am. Oops, sorry, 7:20 am.", True),
        ("6:50 am — hang on — 7:20 am.", True),
        ("7:20 am. Oops, sorry, 6:50 am.", False),
        # Tags and statements of confidence surround the value.
        ("[FINAL] 7:20 am [/FINAL]", True),
        ("<response>7:20 am</response>", True),
        ("7:20 am\n**Certainty:** 0.93", True),
        ("7:20 am (confidence: 80%) [3]", True),
        ("<response>6:50 am</response>", False),
        # The value is ascribed to somebody.
        ("7:20 am, chosen by Lev Stone.", False),
        ("7:20 am (Lev's ferry)", False),
        ("7:20 am (Lev's words)", True),
        # The answer does not commit to the value.
        ("I doubt that it is 7:20 am.", False),
    ],
)
def test_the_value_that_an_answer_commits_to_decides(answer: str, right: bool) -> None:
    assert correct("At what time is my ferry?", FERRY, Family.QA, answer) is right


@pytest.mark.parametrize(
    ("answer", "right"), [("20.8 km", True), ("12.9 miles (about 20.8 km)", True), ("19 km", False)]
)
def test_a_value_in_another_unit_is_the_same_value(answer: str, right: bool) -> None:
    assert correct("How far did I hike to the ferry?", HIKE, Family.QA, answer) is right


TABLE_ROWS = ["Person: Place", "Goran: the Salt House", "Jamila: the Lantern Room"]


@pytest.mark.parametrize(
    "answer",
    [
        "| Person | Place |\n| --- | --- |\n| Goran | the Salt House |\n| Jamila | the Lantern Room |",
        "| Person | Place |  \n|---|---|\n\n| Goran | the Salt House |  \n| Jamila | the Lantern Room |\n",
        "Person | Place\n--- | ---\nGoran | the Salt House\nJamila | the Lantern Room",
    ],
)
def test_rows_of_a_table_stay_apart(answer: str) -> None:
    lines = [line.strip() for line in plain_text(answer, "").splitlines()]
    assert [line for line in lines if line] == TABLE_ROWS


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("| Who | Ferry |\n| --- | --- |\n| Uma Mensah | 7:20 am |\n| Lev Stone | 6:50 am |", True),
        ("| Who | Ferry |\n| --- | --- |\n| Lev Stone | 6:50 am |\n| Uma Mensah | 7:20 am |", True),
        ("| Who | Ferry |\n| --- | --- |\n| Lev Stone | 7:20 am |\n| Uma Mensah | 6:50 am |", False),
    ],
)
def test_a_row_of_a_table_is_about_its_person(answer: str, right: bool) -> None:
    assert correct("At what time is my ferry?", FERRY, Family.QA, answer) is right


@pytest.mark.parametrize(
    ("answer", "items"),
    [
        ("1) soup 2) bread", ["soup", "bread"]),
        ("(1) soup (2) bread", ["soup", "bread"]),
        ("1) soup 2) bread 3) tea", ["soup", "bread", "tea"]),
        ("Both: 1) soup 2) bread", ["Both:", "soup", "bread"]),
        ("1) soup\n2) bread", ["soup", "bread"]),
        ("It is in room 12) of the plan.", ["It is in room 12) of the plan."]),
        ("1) It is in room 12) of the plan\n2) bread", ["It is in room 12) of the plan", "bread"]),
        ("1) Lev paid 30 euros\n2) You paid (20) euros", ["Lev paid 30 euros", "You paid (20) euros"]),
        ("You paid (20) euros, 1) for soup 2) for bread", ["You paid (20) euros,", "for soup", "for bread"]),
        ("You paid (20) or (20) euros", ["You paid (20) or (20) euros"]),
        ("1) 2) soup 3) bread", ["soup", "bread"]),
    ],
)
def test_a_numbered_list_within_a_line_is_split_into_its_items(answer: str, items: list[str]) -> None:
    assert [line.strip() for line in plain_text(answer, "").splitlines()] == items
