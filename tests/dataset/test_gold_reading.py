"""Tests reading the gold of every family in all forms that released files have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.errors import FieldError
from memarena_dataset.gold import (
    AbstainGold,
    AnaphoraGold,
    ClozeGold,
    ConflictGold,
    CounterfactualGold,
    FriendshipShown,
    Gold,
    PermissionGold,
    RubricGold,
    TextGold,
)
from memarena_dataset.io.gold_reading import lettered_options, parse_gold, query_with_options
from memarena_dataset.io.writing import ground_truth_of
from memarena_dataset.model import Family
from memarena_dataset.values import (
    AmountValue,
    DateValue,
    NameValue,
    OrderValue,
    PlaceValue,
    SetValue,
    TermValue,
    TimeValue,
    WeekdayValue,
)

OPTIONS = ["apron", "bucket", "candle", "drum", "easel"]


@pytest.mark.parametrize(
    "truth",
    [
        {"answer_letter": "C", "blank_word": "candle", "options": OPTIONS},
        {"answer_letter": "c)", "options": OPTIONS},
        {"blank_word": "Candle", "options": OPTIONS},
        {"answer_letter": "C", "options": [f"{letter}) {text}" for letter, text in zip("ABCDE", OPTIONS, strict=True)]},
        {"answer_letter": "C", "options": dict(zip("ABCDE", OPTIONS, strict=True))},
        {"answer_letter": "C", "options": [{"letter": "x", "text": text} for text in OPTIONS]},
        {"blanks": ["candle"], "choices": OPTIONS},
        {"blanks": [{"answer": "candle"}], "choices": [OPTIONS]},
    ],
)
def test_every_form_of_a_cloze_gives_the_same_gold(truth: dict[str, Any]) -> None:
    gold = parse_gold(Family.CLOZE, truth)
    assert isinstance(gold, ClozeGold)
    assert (gold.answer_letter, gold.answer_text, gold.options) == ("C", "candle", tuple(OPTIONS))


def test_options_may_be_in_the_query_only() -> None:
    query = "He lit the ____.\nA) apron\nB) candle"
    gold = parse_gold(Family.CLOZE, {"answer_letter": "b"}, query=query)
    assert isinstance(gold, ClozeGold)
    assert gold.answer_text == "candle"


@pytest.mark.parametrize(
    ("truth", "field"),
    [
        ({"options": OPTIONS}, "answer_letter"),
        ({"answer_letter": "F", "options": OPTIONS}, "answer_letter"),
        ({"answer_letter": "A", "blank_word": "candle", "options": OPTIONS}, "blank_word"),
        ({"blank_word": "fan", "options": OPTIONS}, "blank_word"),
        ({"blank_word": "drum", "options": ["drum", "drum"]}, "blank_word"),
        ({"answer_letter": "A"}, "options"),
        ({"answer_letter": "A", "options": ["one"]}, "options"),
        ({"answer_letter": "A", "options": ["one", None]}, "options.1"),
        ({"blanks": ["candle", "drum"], "choices": OPTIONS}, "blanks"),
        (
            {"answer_letter": "A", "options": OPTIONS, "option_values": [{"type": "term", "text": "apron"}]},
            "option_values",
        ),
    ],
)
def test_a_cloze_that_contradicts_itself_is_refused(truth: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        parse_gold(Family.CLOZE, truth)
    assert caught.value.field == f"ground_truth.{field}"


def test_the_query_on_the_wire_always_shows_the_options() -> None:
    bare = query_with_options("He lit the ____.", OPTIONS)
    assert lettered_options(bare) == tuple(OPTIONS)
    assert query_with_options(bare, OPTIONS) == bare
    inline = "He lit the ____: apron, bucket, candle, drum or easel?"
    assert query_with_options(inline, OPTIONS) == inline


@pytest.mark.parametrize(
    ("answer", "answers"),
    [
        ("Oslo", ("Oslo",)),
        (" Oslo ", ("Oslo",)),
        (7, ("7",)),
        (7.0, ("7",)),
        (7.25, ("7.25",)),
        (True, ("Yes",)),
        (["Oslo", 7], ("Oslo", "7")),
        ("maya_chen", ("Maya Chen",)),
    ],
)
def test_answers_become_text(answer: Any, answers: tuple[str, ...]) -> None:
    gold = parse_gold(Family.QA, {"answer": answer}, names={"maya_chen": "Maya Chen"})
    assert isinstance(gold, TextGold)
    assert gold.answers == answers


@pytest.mark.parametrize("answer", [None, "", [], {}, {"a": 1}])
def test_an_empty_answer_is_refused(answer: Any) -> None:
    with pytest.raises(FieldError, match=r"ground_truth.answer"):
        parse_gold(Family.QA, {"answer": answer})


def test_zero_and_no_are_answers() -> None:
    for answer, text in ((0, "0"), (False, "No")):
        gold = parse_gold(Family.QA, {"answer": answer})
        assert isinstance(gold, TextGold)
        assert gold.answers == (text,)


def test_the_parts_of_a_metadata_value_belong_together() -> None:
    truth = {"attribute": "participants", "value": ["maya_chen", "Ravi"]}
    gold = parse_gold(Family.METADATA, truth, names={"maya_chen": "Maya Chen"})
    assert gold == TextGold(answers=("Maya Chen, Ravi",), attribute="participants")


def test_the_halves_of_abstention() -> None:
    abstain = {"expected_response": "abstain", "claim": [{"type": "term", "text": "kite"}], "correct_fact": ""}
    assert parse_gold(Family.CONFABULATION, abstain) == AbstainGold(claim=(TermValue(text="kite"),))
    answer = parse_gold(Family.CONFABULATION, {"expected_response": "answer", "correct_fact": "Oslo"})
    assert answer == TextGold(answers=("Oslo",))
    for truth in ({}, {"expected_response": "perhaps"}, {"expected_response": "answer"}):
        with pytest.raises(FieldError):
            parse_gold(Family.CONFABULATION, truth)


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ({"expected_action": "disclose"}, "disclose"),
        ({"expected_action": "DENY"}, "withhold"),
        ({"expected_disclosure": True}, "disclose"),
        ({"expected_disclosure": "false"}, "withhold"),
        ({"expected_disclosure": False, "expected_action": "withhold"}, "withhold"),
    ],
)
def test_the_action_of_a_permission_item(said: dict[str, Any], action: str) -> None:
    gold = parse_gold(Family.PERMISSION, {"fact": "Oslo", **said}, ego="ada", asker="bo")
    assert isinstance(gold, PermissionGold)
    assert gold.expected_action == action


@pytest.mark.parametrize(
    "truth",
    [
        {"fact": "Oslo"},
        {"expected_action": "disclose"},
        {"fact": "Oslo", "expected_action": "shrug"},
        {"fact": "Oslo", "expected_disclosure": "perhaps"},
        {"fact": "Oslo", "expected_disclosure": True, "expected_action": "withhold"},
        {"fact": "Oslo", "expected_action": "disclose", "target_agent": 7},
        {"fact": "Oslo", "expected_action": "disclose", "friendship": {"friends": True}},
    ],
)
def test_a_permission_item_that_cannot_be_scored_is_refused(truth: dict[str, Any]) -> None:
    with pytest.raises(FieldError):
        parse_gold(Family.PERMISSION, truth)


@pytest.mark.parametrize(("asker", "is_self"), [("ada", True), ("bo", True), ("cy", False), (None, False)])
def test_the_owner_and_the_subject_ask_self_items(asker: str | None, is_self: bool) -> None:
    truth = {"fact": "Oslo", "expected_action": "disclose", "target_agent": "bo"}
    gold = parse_gold(Family.PERMISSION, truth, ego="ada", asker=asker)
    assert isinstance(gold, PermissionGold)
    assert gold.self_item is is_self


# ------------------------------------------------------------------ the way back

TEXT = st.text(st.characters(codec="ascii", categories=("Ll", "Lu", "Nd")), min_size=1, max_size=9)
ALIASES = st.lists(TEXT, max_size=2).map(tuple)
TERM = st.builds(TermValue, text=TEXT, aliases=ALIASES)
VALUE = st.one_of(
    TERM,
    st.builds(NameValue, name=TEXT, aliases=ALIASES),
    st.builds(PlaceValue, name=TEXT, aliases=ALIASES),
    st.dates().map(lambda day: DateValue(date=day.isoformat())),
    st.times().map(lambda time: TimeValue(time=time.strftime("%H:%M"))),
    st.just(WeekdayValue(weekday="friday")),
    st.builds(AmountValue, amount=st.integers(0, 999).map(float), unit=st.none() | TEXT),
    st.builds(SetValue, members=st.lists(TERM, min_size=1, max_size=3).map(tuple)),
    st.builds(OrderValue, items=st.lists(TERM, min_size=1, max_size=3).map(tuple)),
)
VALUES = st.lists(VALUE, max_size=2).map(tuple)
MAYBE = st.none() | TEXT


@st.composite
def clozes(draw: st.DrawFn) -> tuple[Family, Gold]:
    options = draw(st.lists(TEXT, min_size=2, max_size=5, unique_by=str.casefold))
    index = draw(st.integers(0, len(options) - 1))
    typed = draw(st.booleans())
    option_values = tuple(TermValue(text=option) for option in options) if typed else ()
    values = draw(VALUES) or option_values[index : index + 1]
    letter = "ABCDE"[index]
    return Family.CLOZE, ClozeGold(
        answer_letter=letter,
        answer_text=options[index],
        options=tuple(options),
        option_values=option_values,
        values=values,
    )


ANSWERS = st.lists(TEXT, min_size=1, max_size=3).map(tuple)
GOLDS = st.one_of(
    clozes(),
    st.tuples(st.just(Family.QA), st.builds(TextGold, answers=ANSWERS, values=VALUES, attribute=st.none())),
    st.tuples(
        st.sampled_from([Family.METADATA, Family.TEMPORAL]),
        st.builds(TextGold, answers=ANSWERS, values=VALUES, attribute=MAYBE),
    ),
    st.tuples(st.just(Family.CONFABULATION), st.builds(TextGold, answers=ANSWERS, values=VALUES, attribute=st.none())),
    st.tuples(
        st.sampled_from([Family.CONFABULATION, Family.WITNESS]),
        st.builds(AbstainGold, adversarial_answer=MAYBE, claim=VALUES, values=VALUES),
    ),
    st.tuples(
        st.just(Family.COUNTERFACTUAL),
        st.builds(CounterfactualGold, real_fact=TEXT, altered_detail=TEXT, values=VALUES, altered_values=VALUES),
    ),
    st.tuples(
        st.just(Family.CONFLICT),
        st.builds(
            ConflictGold,
            original_detail=TEXT,
            changed_detail=TEXT,
            source_agent=MAYBE,
            conflicting_agent=MAYBE,
            values=VALUES,
            changed_values=VALUES,
        ),
    ),
    st.tuples(st.just(Family.ANAPHORA), st.builds(AnaphoraGold, referent=TEXT, antecedent_text=TEXT, values=VALUES)),
    st.tuples(
        st.just(Family.PERMISSION),
        st.builds(
            PermissionGold,
            fact=TEXT,
            expected_action=st.sampled_from(["disclose", "withhold"]),
            query_agent=MAYBE,
            target_agent=MAYBE,
            permission_level=MAYBE,
            sensitive_category=MAYBE,
            friendship=st.none() | st.builds(FriendshipShown, friends=st.booleans(), session_id=TEXT, turn_id=TEXT),
            autonomous_privacy=st.booleans(),
            anonymous_querier=st.booleans(),
            known_requester=st.booleans(),
            self_item=st.booleans(),
            values=VALUES,
        ),
    ),
)


@given(GOLDS)
def test_gold_survives_a_round_trip(case: tuple[Family, Gold]) -> None:
    family, gold = case
    assert parse_gold(family, ground_truth_of(family, gold)) == gold


# ------------------------------------------------------------------ rubrics


def test_a_rubric_is_read_and_written_back() -> None:
    gold = parse_gold(Family.QA, {"rubric": [" It names the coat. ", "It is short."]})
    assert gold == RubricGold(rubric=("It names the coat.", "It is short."))
    assert ground_truth_of(Family.QA, gold) == {"rubric": ["It names the coat.", "It is short."]}


@pytest.mark.parametrize(
    ("truth", "field"),
    [
        ({"rubric": []}, "rubric"),
        ({"rubric": "It is short."}, "rubric"),
        ({"rubric": None, "answer": "x"}, "rubric"),
        ({"rubric": ["It is short.", "  "]}, "rubric.1"),
        ({"rubric": [["It is short."]]}, "rubric.0"),
        ({"rubric": ["It is short."], "answer": "a coat"}, "answer"),
        ({"rubric": ["It is short."], "values": [{"type": "term", "text": "coat"}]}, "values"),
    ],
)
def test_an_invalid_rubric_is_refused(truth: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        parse_gold(Family.QA, truth)
    assert caught.value.field == f"ground_truth.{field}"
