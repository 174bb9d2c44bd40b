"""What else an answer says beside the value: another matter's value, doubt, a denial behind it, lengths in parts."""

from __future__ import annotations

import pytest
from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue, DurationValue, NameValue, PlaceValue, TermValue, TimeValue, Value

from .test_holes import check, text

BAKED = [
    ("Uma Mensah", "I bake the cheesecake for 94 minutes, low and slow."),
    ("Wen Fischer", "My sponge takes 33 minutes."),
]
MINUTES = text(AmountValue(amount=94, unit="minutes"))
BAKES = "How long do I leave the creamy dessert on a biscuit base in the oven?"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("94 minutes for the cheesecake, and 33 for the sponge.", True),
        ("The cheesecake takes 94 minutes. The sponge takes 33 minutes.", True),
        ("94 minutes (the 33 minutes in my notes belong to a sponge).", True),
        ("33 minutes is the time for the sponge; the cheesecake needs 94 minutes.", True),
        ("94 minutes is for the sponge; the cheesecake needs 33 minutes.", False),
        ("33 minutes for the cheesecake, and 94 for the sponge.", False),
        ("The sponge takes 94 minutes. The cheesecake takes 33 minutes.", False),
        ("94... let me recount: it's 33 minutes.", False),
        ("94 minutes or 33 minutes.", False),
        ("94 minutes is what somebody else told me; yours takes 33 minutes.", False),
    ],
)
def test_the_value_of_another_matter_counts_neither_for_nor_against(answer: str, right: bool) -> None:
    check(BAKES, MINUTES, Family.QA, BAKED, answer, right)


TRAIN = text(TimeValue(time="07:56"))
RIDES = [("Uma Mensah", "My train to the funeral goes at 7:56 in the morning.")]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("7:56 in the morning; the 9:32 is someone else's train to a trade fair.", True),
        ("Your train to the funeral leaves at 7:56. The 9:32 goes to the trade fair.", True),
        ("The 7:56 goes to the trade fair; your train to the funeral leaves at 9:32.", False),
    ],
)
def test_another_ride_has_its_own_time(answer: str, right: bool) -> None:
    check("When, by the station clock, does my ride to the funeral begin?", TRAIN, Family.QA, RIDES, answer, right)


GIVEN = [
    "Probably {}.",
    "{}, probably.",
    "I think it's {}.",
    "I believe it is {}.",
    "It's most likely {}.",
    "I'm fairly sure it was {}.",
    "If I remember correctly, it's {}.",
    "As far as I remember, {}.",
    "It should be {}.",
    "It's presumably {}.",
]
NOT_GIVEN = [
    "It might be {}.",
    "It could be {}.",
    "Perhaps {}.",
    "Maybe {}?",
    "Possibly {}, but I can't be certain.",
    "{} is only a guess.",
    "Probably {}, but that's just a guess and I wouldn't rely on it.",
    "Either {} or something else, I couldn't say.",
]
ASKED: dict[Family, tuple[str, Value, str, str]] = {
    Family.QA: ("What is my secret ingredient?", TermValue(text="allspice"), "allspice", "I put in allspice."),
    Family.ANAPHORA: (
        "Which object did I mean when I said that I had lent it out?",
        TermValue(text="a diving helmet"),
        "the diving helmet",
        "I lent the diving helmet to the museum.",
    ),
    Family.TEMPORAL: (
        "How many days passed between the move and the party?",
        DurationValue(days=11),
        "11 days",
        "I moved, and eleven days later there was the party.",
    ),
    Family.METADATA: (
        "In which part of town do I live?",
        PlaceValue(name="Withy Common"),
        "Withy Common",
        "I live in Withy Common now.",
    ),
    Family.CONFABULATION: (
        "Who repairs my bicycle?",
        NameValue(name="Leopold Strasser"),
        "Leopold Strasser",
        "Leopold Strasser repairs my bicycle.",
    ),
}


@pytest.mark.parametrize("family", ASKED, ids=lambda family: family.value)
@pytest.mark.parametrize("wording", GIVEN)
def test_a_single_value_held_for_probable_is_an_answer_in_every_family(family: Family, wording: str) -> None:
    question, value, said, told = ASKED[family]
    answer = wording.format(said)
    check(question, text(value), family, [("Uma Mensah", told)], answer[0].upper() + answer[1:], True)


@pytest.mark.parametrize("family", ASKED, ids=lambda family: family.value)
@pytest.mark.parametrize("wording", NOT_GIVEN)
def test_a_value_held_for_possible_only_is_no_answer_in_any_family(family: Family, wording: str) -> None:
    question, value, said, told = ASKED[family]
    answer = wording.format(said)
    check(question, text(value), family, [("Uma Mensah", told)], answer[0].upper() + answer[1:], False)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("One week plus four days.", True),
        ("A week and four days.", True),
        ("It was 1 week and 4 days.", True),
        ("11 days, so a week and a half and a bit.", True),
        ("Eleven days (one week plus four days).", True),
        ("Two weeks minus three days.", True),
        ("One week plus three days.", False),
        ("Two weeks and four days.", False),
    ],
)
def test_a_length_may_be_told_in_parts(answer: str, right: bool) -> None:
    question, value, _, told = ASKED[Family.TEMPORAL]
    check(question, text(value), Family.TEMPORAL, [("Uma Mensah", told)], answer, right)


HELMET = ASKED[Family.ANAPHORA]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("People assume the diving helmet, but that was not it. It was a stuffed owl.", False),
        ("The diving helmet comes to mind, but that isn't the one.", False),
        ("You'd expect the diving helmet, but no, it was the stuffed owl.", False),
        ("One could take it for the diving helmet, but that's wrong.", False),
        ("Not the stuffed owl but the diving helmet.", True),
        ("Many would say the stuffed owl, but it was the diving helmet.", True),
        ("It's the diving helmet, but I don't know when you lent it.", True),
        ("The diving helmet, but that's not the only thing you lent out that year.", True),
    ],
)
def test_a_denial_behind_but_is_about_the_value_before_it(answer: str, right: bool) -> None:
    question, value, _, told = HELMET
    check(question, text(value), Family.ANAPHORA, [("Uma Mensah", told)], answer, right)


LIVES = [("Uma Mensah", "I live in Withy Common, not in the Gasworks Quarter where Leo is.")]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("withy common", True),
        ("you live in withy common", True),
        ("withy common or gasworks quarter", False),
        ("either gasworks quarter or withy common, not sure", False),
        ("gasworks quarter", False),
    ],
)
def test_answers_in_small_letters_are_read(answer: str, right: bool) -> None:
    value = text(PlaceValue(name="Withy Common"))
    check("In which part of town do I live?", value, Family.METADATA, LIVES, answer, right)
