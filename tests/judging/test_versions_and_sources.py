"""Tests answers that give two versions of a value, or two sources, as sentences, lists or JSON objects.

With the two values exchanged the same answer is wrong.
"""

from __future__ import annotations

import pytest
from memarena_dataset.gold import AnaphoraGold, Gold
from memarena_dataset.model import Family
from memarena_dataset.values import NameValue, PlaceValue, TermValue, TimeValue, Value

from .test_holes import check, conflict, text

MATTER = "the exact minute of Vera Varga's railway connection towards the coast"
TIMES = (
    TimeValue(time="18:37"),
    TimeValue(time="07:05"),
    [
        ("Vera Varga", "My train to the coast leaves at 6:37 pm."),
        ("Vera Varga", "It has changed: my train to the coast leaves at 7:05 am."),
    ],
)
BOTH = [
    "It used to be {old} (now {new}).",
    "Currently {new}. Before that, it was {old}.",
    "Currently {new}. Before that it was {old}.",
    "Now {new}. Previously {old}.",
    "The latest information says {new}; the older one said {old}.",
    "First {old}, then {new}.",
    "It changed from {old} to {new}.",
    "It was {old} before it became {new}.",
    "At first it was {old}; that has since been changed to {new}.",
    "Old: {old}. New: {new}.",
    "- before: {old}\n- now: {new}",
    '{{"before": "{old}", "now": "{new}"}}',
    "{old} → {new}",
    "{old} -> {new}",
    "{new} (formerly {old})",
    "{new} (changed from {old})",
    "{old}, now {new}.",
    "Vera had planned {old} and later moved it to {new}.",
    "{new} replaced {old}.",
    "{old} was replaced by {new}.",
    "It is {new}; {old} no longer holds.",
    "{old} was the first version, {new} is the current one.",
    "Before the revision it was {old}, afterwards {new}.",
]
ASKED = [
    (f"There was a revision as to {MATTER}. What is correct at present?", TIMES[1]),
    (f"There was a revision as to {MATTER}. What was correct originally?", TIMES[0]),
    (f"Prior to the revision, what was correct as to {MATTER}?", TIMES[0]),
]


@pytest.mark.parametrize(("question", "value"), ASKED)
@pytest.mark.parametrize("wording", BOTH)
def test_of_two_versions_each_has_its_own_role(wording: str, question: str, value: Value) -> None:
    answer = wording.format(old="6:37 pm", new="7:05 am")
    turned = wording.format(old="7:05 am", new="6:37 pm")
    check(question, text(value), Family.QA, TIMES[2], answer, True)
    check(question, text(value), Family.QA, TIMES[2], turned, False)


def test_the_full_stop_is_not_part_of_a_time_at_the_end() -> None:
    question = f"There was a revision as to {MATTER}. What is correct at present?"
    check(question, text(TIMES[1]), Family.QA, TIMES[2], "It is 7:05 a.m. now, before that it was 6:37 p.m.", True)
    check(question, text(TIMES[1]), Family.QA, TIMES[2], "It was 7:05 am. It is 6:37 pm now.", False)


PAIRS: list[tuple[str, str, Value, Value]] = [
    ("Ruth Ekwueme", "Solveig Dahl", NameValue(name="Ruth Ekwueme"), NameValue(name="Solveig Dahl")),
    ("the Knitted Cap", "the Fig Tree", PlaceValue(name="the Knitted Cap"), PlaceValue(name="the Fig Tree")),
    ("wine red", "ash grey", TermValue(text="wine red"), TermValue(text="ash grey")),
    ("6:10 pm", "3:50 pm", TimeValue(time="18:10"), TimeValue(time="15:50")),
]
TOLD = [
    "According to Jamila it's {one}, according to Goran {other}.",
    "Goran puts it at {other}, whereas Jamila herself speaks of {one}.",
    "From Jamila: {one}. From Goran: {other}.",
    "You heard {one} from Jamila and {other} from Goran.",
    "{one} is what Jamila told you; Goran told you {other}.",
    "| Jamila | {one} |\n| Goran | {other} |",
    '{{"answer": {{"Jamila Fischer": "{one}", "Goran Fitzgerald": "{other}"}}}}',
]


@pytest.mark.parametrize(("phrase", "other_phrase", "value", "changed"), PAIRS)
@pytest.mark.parametrize("wording", TOLD)
def test_each_source_has_its_own_version(
    wording: str, phrase: str, other_phrase: str, value: Value, changed: Value
) -> None:
    question = "Opinions differ as to what Jamila Fischer chose. What did either source claim?"
    statements = [("Jamila Fischer", f"It is {phrase}."), ("Goran Fitzgerald", f"For Jamila it is {other_phrase}.")]
    gold = conflict(value, changed)
    check(question, gold, Family.CONFLICT, statements, wording.format(one=phrase, other=other_phrase), True)
    check(question, gold, Family.CONFLICT, statements, wording.format(one=other_phrase, other=phrase), False)


@pytest.mark.parametrize(
    ("thing", "answer", "right"),
    [
        ("a kayak paddle", "the paddle", True),
        ("a kayak paddle", "a kayak", False),
        ("a clay oil lamp", "the oil lamp", True),
        ("a clay oil lamp", "clay", False),
        ("a set of silver spoons", "a set of spoons", True),
        ("a set of silver spoons", "silver", False),
        ("a railway lantern", "railway", False),
        ("a pair of ice skates", "a pair of skates", True),
        ("a pair of ice skates", "a pair of skis", False),
    ],
)
def test_a_thing_is_identified_by_its_noun_and_not_by_its_modifiers(thing: str, answer: str, right: bool) -> None:
    gold: Gold = AnaphoraGold(referent=thing, antecedent_text=thing, values=(TermValue(text=thing),))
    check("Which object did I give away?", gold, Family.ANAPHORA, [("Uma Mensah", f"I found {thing}.")], answer, right)


def test_the_final_answer_counts_and_earlier_considerations_do_not() -> None:
    gold = text(TermValue(text="a clay oil lamp"))
    answer = "Hmm, a hat stand? No, that was sold. Final answer: the clay oil lamp."
    check("Which object did I lend out?", gold, Family.ANAPHORA, [], answer, True)
