"""Tests answers with more than the value: values of other matters, doubt, later denials, durations in parts."""

from __future__ import annotations

import pytest
from memarena_dataset.gold import ConflictGold, CounterfactualGold, TextGold
from memarena_dataset.model import Family
from memarena_dataset.values import (
    AmountValue,
    DateValue,
    DurationValue,
    NameValue,
    PlaceValue,
    SetValue,
    TermValue,
    TimeValue,
    Value,
    WeekdayValue,
)

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
def test_the_value_of_another_matter_is_ignored(answer: str, right: bool) -> None:
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
def test_one_value_called_probable_is_an_answer_in_every_family(family: Family, wording: str) -> None:
    question, value, phrase, statement = ASKED[family]
    answer = wording.format(phrase)
    check(question, text(value), family, [("Uma Mensah", statement)], answer[0].upper() + answer[1:], True)


@pytest.mark.parametrize("family", ASKED, ids=lambda family: family.value)
@pytest.mark.parametrize("wording", NOT_GIVEN)
def test_a_value_called_only_possible_is_no_answer_in_any_family(family: Family, wording: str) -> None:
    question, value, phrase, statement = ASKED[family]
    answer = wording.format(phrase)
    check(question, text(value), family, [("Uma Mensah", statement)], answer[0].upper() + answer[1:], False)


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
def test_a_duration_may_be_given_in_parts(answer: str, right: bool) -> None:
    question, value, _, statement = ASKED[Family.TEMPORAL]
    check(question, text(value), Family.TEMPORAL, [("Uma Mensah", statement)], answer, right)


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
def test_a_denial_after_but_refers_to_the_value_before_it(answer: str, right: bool) -> None:
    question, value, _, statement = HELMET
    check(question, text(value), Family.ANAPHORA, [("Uma Mensah", statement)], answer, right)


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
def test_answers_in_lower_case_are_read(answer: str, right: bool) -> None:
    value = text(PlaceValue(name="Withy Common"))
    check("In which part of town do I live?", value, Family.METADATA, LIVES, answer, right)


FROG = [
    ("Mara Lind", "I painted a bench at the spring fair, cobalt blue it is now."),
    ("Timo Krall", "I went for olive with my trellis."),
]
COLOUR = text(TermValue(text="cobalt blue"))
SHOWN = [
    ("Mara Lind", "On the ferry I always watch Silver Orchard."),
    ("Timo Krall", "Low Tide is the one I watch there."),
]
SHOW = text(TermValue(text="Silver Orchard"))
PACKED = [("Mara Lind", "My parcel must be collected by April 9, 2025.")]
PARCEL = text(DateValue(date="2025-04-09"))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The trellis was painted cobalt blue. The bench is lavender.", False),
        ("It was cobalt blue until Timo talked you out of it: you took lavender for the bench.", False),
        ("The bench isn't lavender, as Timo has it, but cobalt blue.", True),
        ("The shelf stayed lavender; for the bench you took cobalt blue.", True),
    ],
)
def test_an_unknown_thing_may_be_the_answer_to_the_question(answer: str, right: bool) -> None:
    check("Which colour did I give the bench?", COLOUR, Family.QA, FROG, answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("You have never watched Silver Orchard on a ferry.", False),
        ("You gave up Silver Orchard after the pilot.", False),
        ("There is no doubt: Silver Orchard.", True),
        ("No doubt that it's Silver Orchard.", True),
        ("I doubt that it's Silver Orchard.", False),
        ("Low Tide for the ferry, and Silver Orchard for the bath.", False),
        ("Both you and Timo watch Silver Orchard on the ferry.", True),
        ("Timo was curious, and you replied that you watch Silver Orchard there.", True),
    ],
)
def test_negation_and_people_have_their_scope(answer: str, right: bool) -> None:
    check("What do I watch on the ferry?", SHOW, Family.QA, SHOWN, answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("As Timo remembers it, you have until April 9, 2025, but Timo is mistaken.", False),
        ("Timo claims that it's April 9, 2025, whereas you said that it's April 19, 2025.", False),
        ("Two days before April 9, 2025.", False),
        ("Discard the date of April 9, 2025: the parcel must be collected by April 19, 2025.", False),
        ("April 19, 2025, sorry, April 9, 2025.", True),
        ("First the library on April 2, 2025, then the parcel on April 9, 2025.", True),
    ],
)
def test_statements_of_other_people_and_corrected_values(answer: str, right: bool) -> None:
    check("By which date must I collect the parcel?", PARCEL, Family.QA, PACKED, answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Where it reads 8:40, put 7:20 am.", True),
        ("Where it reads 7:20 am, put 8:40 am.", False),
        ("That's accurate, 8:40 am, although 7:20 am was on the table.", False),
    ],
)
def test_an_edit_and_an_affirmed_premise(answer: str, right: bool) -> None:
    gold = CounterfactualGold(
        real_fact="7:20 am",
        altered_detail="8:40 am",
        values=(TimeValue(time="07:20"),),
        altered_values=(TimeValue(time="08:40"),),
    )
    statements = [("Mara Lind", "My ferry is at 7:20 am.")]
    check(
        "My ferry is at 8:40 am, I noted. What needs amending?", gold, Family.COUNTERFACTUAL, statements, answer, right
    )


SEWING = text(NameValue(name="Ulla Brix"))
TAILORS = [("Mara Lind", "My dress goes to Ulla Brix for the hem."), ("Timo Krall", "Ask Jens Aamot about my suit.")]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Bea trusts Ulla Brix, Timo trusts Jens Aamot, and you trust Rolf Sand.", False),
        ("Ulla Brix and Jens Aamot both sew; the former does the hem of your dress, the latter Timo's suit.", True),
        ("Ulla Brix and Jens Aamot both sew; the latter does the hem of your dress, the former Timo's suit.", False),
        ("Jens Aamot is quicker, says Timo. I go with Ulla Brix.", True),
        ("Ulla Brix is quicker, says Timo. I go with Jens Aamot.", False),
    ],
)
def test_names_joined_to_names_and_the_final_choice(answer: str, right: bool) -> None:
    check("Who does the hem of my dress?", SEWING, Family.QA, TAILORS, answer, right)


FERRY = [("Mara Lind", "My ferry is at 7:20 am."), ("Timo Krall", "I take the bus at 8:40 am.")]


TRIPS = [
    ("Mara Lind", "My plan is to have the sailing trip in mid-May."),
    ("Timo Krall", "I want the regatta in June."),
]


def test_his_refers_to_the_person_before_it() -> None:
    answer = "Timo has his sailing trip in mid-May, and Mara's was put off to late June."
    check("When did Mara plan the sailing trip for?", text(TermValue(text="mid-May")), Family.QA, TRIPS, answer, False)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Monday is her pottery. The rowing, though, is a Friday thing.", True),
        ("Friday is her pottery. The rowing, though, is a Monday thing.", False),
    ],
)
def test_a_contrast_between_commas_does_not_split_a_clause(answer: str, right: bool) -> None:
    statements = [("Mara Lind", "My rowing is on Friday."), ("Mara Lind", "My pottery is on Monday.")]
    check("On which day is Mara's rowing?", text(WeekdayValue(weekday="friday")), Family.QA, statements, answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Rolf told you himself, and Timo Krall stood next to him.", False),
        ("Bea told you, quoting Timo Krall.", False),
        ("It was Timo Krall who told you; Rolf did not.", True),
    ],
)
def test_the_source_of_a_value_is_the_person_that_the_answer_names(answer: str, right: bool) -> None:
    gold = TextGold(answers=("Timo Krall",), values=(NameValue(name="Timo Krall"),), attribute="speaker")
    check("Who told me which boat Rolf rows?", gold, Family.METADATA, FERRY, answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Timo Krall and Mara Lind listened; Rolf Sand didn't.", True),
        ("Timo Krall listened, and Mara Lind turned up later.", False),
    ],
)
def test_an_absent_person_is_not_a_listener(answer: str, right: bool) -> None:
    both = SetValue(members=(NameValue(name="Timo Krall"), NameValue(name="Mara Lind")))
    gold = TextGold(answers=("Timo Krall, Mara Lind",), values=(both,), attribute="participants")
    check("Who heard which boat I row?", gold, Family.METADATA, FERRY, answer, right)


def test_a_version_without_a_source_does_not_count() -> None:
    gold = ConflictGold(
        original_detail="7:20 am",
        changed_detail="8:40 am",
        values=(TimeValue(time="07:20"),),
        changed_values=(TimeValue(time="08:40"),),
    )
    question = "I was told two times for the ferry. Which?"
    check(question, gold, Family.CONFLICT, FERRY, "7:20 am each time; no one ever spoke of 8:40 am.", False)
    check(question, gold, Family.CONFLICT, FERRY, "7:20 am from Mara, and 8:40 am from Timo.", True)
