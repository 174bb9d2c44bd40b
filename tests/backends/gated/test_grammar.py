"""Tests the grammar of wishes: what English sentences ask for, and which sentences ask for nothing.

A *wish* is what a speaker says about who may know a fact. A wish that is not recognised leaks; a sentence that is
falsely read as a wish withholds what the asker may know.
"""

from __future__ import annotations

from datetime import date

import pytest
from memarena_backend_gated.grammar import read_turn
from memarena_backend_gated.records import Audience, Effect, Group, Whose

TODAY = date(2025, 3, 5)  # a Wednesday
NAMES = frozenset({"Ines", "Paulo", "Greta", "Samir"})
ALL = Audience(everyone=True)


def names(*people: str) -> Audience:
    return Audience(names=people)


def group(kind: str, whose: Whose) -> Audience:
    return Audience(groups=(Group(kind, whose),))


WISHES = [
    ("Don't breathe a word of this to Paulo.", [(Effect.WITHHOLD, names("Paulo"), False)]),
    ("Please keep that to yourself.", [(Effect.WITHHOLD, ALL, False)]),
    ("I would hate for Greta to find out.", [(Effect.WITHHOLD, names("Greta"), False)]),
    ("Your colleagues must never hear of it.", [(Effect.WITHHOLD, group("colleague", Whose.OWNER), False)]),
    ("My parents are not supposed to know.", [(Effect.WITHHOLD, group("family", Whose.SPEAKER), False)]),
    ("Nobody but Samir may know.", [(Effect.WITHHOLD, Audience(everyone=True, except_names=("Samir",)), False)]),
    ("Greta should hear that from me.", [(Effect.WITHHOLD, names("Greta"), False)]),
    ("Leave my brother out of this.", [(Effect.WITHHOLD, group("brother", Whose.SPEAKER), False)]),
    ("The spare code should not be given to guests.", [(Effect.WITHHOLD, group("guest", Whose.OPEN), False)]),
    ("Revoke Greta's access to the calendar.", [(Effect.WITHHOLD, names("Greta"), False)]),
    ("Feel free to mention it to Ines and Paulo.", [(Effect.SHARE, names("Ines", "Paulo"), False)]),
    ("It's fine if my friends know.", [(Effect.SHARE, group("friend", Whose.SPEAKER), False)]),
    ("Only Ines is allowed to see that.", [(Effect.SHARE, names("Ines"), True)]),
    ("Let's keep it within the family.", [(Effect.SHARE, group("family", Whose.OPEN), True)]),
    ("That is no secret, everyone knows.", [(Effect.SHARE, ALL, False), (Effect.SHARE, ALL, False)]),
    (
        "Samir can know, but Greta can't.",
        [(Effect.SHARE, names("Samir"), False), (Effect.WITHHOLD, names("Greta"), False)],
    ),
]
NO_WISHES = [
    "Let me know how the exam goes!",
    "I told Greta about the new bakery.",
    "Did you tell Paulo?",
    "You can tell he was tired.",
    "We shared a pizza and a bottle of wine.",
    "I cannot show you the results.",
    "It was great to talk to people there.",
]
TIMES = [
    ("Don't tell Ines until Friday.", None, date(2025, 3, 7)),
    ("Keep it quiet till the 20th.", None, date(2025, 3, 20)),
    ("From April 2 on everyone may know.", date(2025, 4, 2), None),
    ("You can tell people after next week.", date(2025, 3, 11), None),
]


@pytest.mark.parametrize(("text", "expected"), WISHES)
def test_a_sentence_states_who_may_know(text: str, expected: list[tuple[Effect, Audience, bool]]) -> None:
    wishes = read_turn(text, TODAY, NAMES.__contains__).wishes
    assert [(wish.effect, wish.audience, wish.others_excluded) for wish in wishes] == expected


@pytest.mark.parametrize("text", NO_WISHES)
def test_other_sentences_with_the_same_verbs_state_no_wish(text: str) -> None:
    reading = read_turn(text, TODAY, NAMES.__contains__)
    assert not reading.wishes
    assert reading.rest


@pytest.mark.parametrize(("text", "begins", "ends"), TIMES)
def test_a_wish_holds_between_the_days_that_it_names(text: str, begins: date | None, ends: date | None) -> None:
    (wish,) = read_turn(text, TODAY, NAMES.__contains__).wishes
    assert (wish.valid_from, wish.valid_until) == (begins, ends)


def test_clauses_of_a_turn_complete_each_other() -> None:
    until, then = read_turn(
        "Keep it quiet until the 20th. After that anyone may hear it.", TODAY, lambda _: False
    ).wishes
    assert (until.valid_until, then.valid_from) == (date(2025, 3, 20), date(2025, 3, 20))
    public, only = read_turn(
        "Everyone can know from Monday on. Until then only Ines.", TODAY, NAMES.__contains__
    ).wishes
    assert (public.valid_from, only.valid_until, only.others_excluded) == (date(2025, 3, 10), date(2025, 3, 10), True)


def test_a_deletion_names_what_is_to_go() -> None:
    (wish,) = read_turn("Please delete the old gate code 4471 from memory.", TODAY, lambda _: False).wishes
    assert (wish.effect, wish.values) == (Effect.DELETE, ("4471",))
