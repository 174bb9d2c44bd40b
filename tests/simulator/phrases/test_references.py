"""Tests references: words of an answer that the teller may have left out must occur earlier in the same talk.

Otherwise an answer would mention a thing that the listener never heard of, and readers would notice that the talk is
generated.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from memarena_dataset.values.generous import numbers_in
from memarena_dataset.values.phrases import normal, phrase_occurs
from memarena_masim.errors import MasimError
from memarena_masim.facts import catalogue as module
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.pack import PUBLIC_PACK
from memarena_masim.phrases.grammar import Bank, wordings, wordings_of
from memarena_masim.phrases.library import library
from memarena_masim.phrases.references import Heard, References, stems
from memarena_masim.phrases.scenes import read_topic
from memarena_masim.plan import events
from memarena_masim.toml_text import parsed

SCENE = """
[topic]
half = "tuning"
heads = ["hobby:diy"]

[moth]
tone = "plain"
thing = "my wardrobe"
ask = ["How are you?", "What is new?", "And you?"]
again = ["And your wardrobe?", "What about your wardrobe?"]
resume = ["My wardrobe again.", "About my wardrobe."]
also = ["I see.", "Go on."]

[moth.values]
cost = "euros 10..90 step 10"
"""
BEAT = """
[[moth.beats]]
tell = ["There was a moth in my {velvet trousers|knitted waistcoat}.", "+The exterminator wanted $cost for a jar.", "+He sent a letter."]
friend = ["A moth, of all things."]
assistant = ["Moths like {velvet|wool}."]
"""  # noqa: E501 - lines of a bank are as long as they are
HEARD = "There was a moth in my velvet trousers."


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> References:
    """The references of all scenes of the library and of the scene above, about a moth."""
    path: Path = tmp_path_factory.mktemp("scenes") / "clothing.toml"
    path.write_text(SCENE + 6 * BEAT, encoding="utf-8")
    return References([*library().scenes.values(), *read_topic(path).scenes])


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("A moth in velvet!", set()),
        ("Your waistcoat!", stems("waistcoat")),
        ("I like the jar.", stems("jar")),
        ("And 40 euros for that?", {"40 euros"}),
        ("And 540 euros for that?", set()),
        ("I'd frame that letter.", stems("letter")),
        ("Letters are all I ever get.", set()),
        ("I never wear silk.", set()),
    ],
)
def test_what_the_teller_left_out_is_unsaid(answer: str, missing: set[str], references: References) -> None:
    """Other branches of choices, optional sentences and values, also short words; common ones if pointed at."""
    assert references.unsaid(answer, "clothing.moth", 0, Heard(HEARD, ["40 euros"])) == missing


def test_what_was_told_on_another_day_is_unsaid(references: References) -> None:
    """A beat's answers may take up the beats before it only where they were told in the same talk."""
    assert references.unsaid("A moth!", "clothing.moth", 3, Heard("He sent a letter.", [])) == stems("moth")
    assert references.unsaid("A moth!", "clothing.moth", 3, Heard(HEARD, [])) == set()


@pytest.mark.parametrize("name", ["details", "sensitive", "community", "happenings"])
def test_a_kind_of_fact_without_a_reaction_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its file and section."""
    toml_reader = module._toml

    def without(facts: Path, file_name: str) -> dict[str, dict[str, object]]:
        rows = toml_reader(facts, file_name)
        if file_name == name:
            next(row for row in rows.values() if "react" in row).pop("react")
        return rows

    monkeypatch.setattr(module, "_toml", without)
    with pytest.raises(MasimError, match=rf"facts/{name}\.toml: \w+: react is missing"):
        catalogue.__wrapped__(PUBLIC_PACK)


def test_reactions_hold_for_whoever_a_fact_is_about() -> None:
    """They name neither the one who told it nor its value: no slot."""
    rules = catalogue().bank.rules
    lines = [line for name, rule in rules.items() if name.startswith("react.") for line in rule.alternatives]
    assert len(lines) > 60
    assert not [line for line in lines if catalogue().bank.slots_of(line)]


def test_a_kind_of_fact_without_a_question_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new kind of detail needs its section in the file of questions too."""
    toml_reader = module._toml

    def with_another(facts: Path, file_name: str) -> dict[str, dict[str, object]]:
        rows = toml_reader(facts, file_name)
        return {**rows, "shoe_size": rows["doctor"]} if file_name == "details" else rows

    monkeypatch.setattr(module, "_toml", with_another)
    with pytest.raises(MasimError, match=r"facts/invites\.toml: invite\.shoe_size is missing"):
        catalogue.__wrapped__(PUBLIC_PACK)


def test_a_question_for_a_kind_that_is_never_asked_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A code is never the answer to what is new, so a question for it would never be asked."""
    toml_reader = module._toml

    def with_another(facts: Path, file_name: str) -> dict[str, dict[str, object]]:
        rows = toml_reader(facts, file_name)
        return {**rows, "door_code": rows["doctor"]} if file_name == "invites" else rows

    monkeypatch.setattr(module, "_toml", with_another)
    with pytest.raises(MasimError, match=r"facts/invites\.toml: door_code: no friend asks for a fact of this kind"):
        catalogue.__wrapped__(PUBLIC_PACK)


def test_neither_the_question_for_a_fact_nor_what_is_added_or_answered_tells_its_value() -> None:
    """They have no slot but for the thing, its source and people, and hold no digit; what is added speaks to nobody."""
    bank = catalogue().bank
    kinds = ("invite.", "more.", "heard.", "noted.", "why.")
    rules = {name: rule for name, rule in bank.rules.items() if name.startswith(kinds)}
    assert len(rules) > 160
    for name, rule in rules.items():
        slots = set().union(*map(bank.slots_of, rule.alternatives))
        allowed_slots = {
            "more": {"item", "subject", "a"},
            "heard": {"item", "subject", "group"},
            "noted": {"item", "group"},
        }
        allowed_slots |= {"why": set(), "invite": {"item", "subject", "source"}}
        assert slots <= allowed_slots.get(name.split(".")[0], {"item", "subject"}), name
        texts = [text for line in rule.alternatives for text in wordings(line)]
        assert not [text for text in texts if re.search(r"\d", text)]
        if name.startswith("more."):
            assert not [text for text in texts if re.search(r"\byou(?:r|rs|rself)?\b", text, re.IGNORECASE)], name


def test_what_makes_a_person_think_of_a_fact_names_neither_thing_nor_value() -> None:
    """Nor whether others know of it, which is for the wish to say."""
    bank, kinds = catalogue().bank, catalogue().attributes
    rules = {name.removeprefix("why."): rule for name, rule in bank.rules.items() if name.startswith("why.")}
    assert kinds.keys() < rules.keys()
    for name, rule in rules.items():
        kind = kinds.get(name)
        words = (
            (*kind.items, *(kind.kind.choices if kind.kind.type in ("name", "place", "term") else ())) if kind else ()
        )
        for text in wordings_of(rule):
            assert not numbers_in(text), (name, text)
            assert not [word for word in words if phrase_occurs(word, normal(text))], (name, text)
            if kind and (kind.confidential or kind.sensitive):
                assert not re.search(r"\b(?:secret|(?:everybody|people|friends) (?:can )?knows?)\b", text), (name, text)


@pytest.mark.parametrize("rule", ["more.shoe_size", "why.shoe_size", "why.friends", "why.fate"])
def test_a_line_for_a_kind_of_fact_that_there_is_not_is_named(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would never be said: occasions are those of a tie or a new fact."""
    read_method = Bank.read

    def with_another(bank: Bank, path: Path) -> None:
        read_method(bank, path)
        if path.name == "more.bank":
            bank.add(rule, "I have had these for years.", "more.bank:1")

    monkeypatch.setattr(Bank, "read", with_another)
    with pytest.raises(MasimError, match=rf"{re.escape(rule)}: there is no such kind of fact"):
        catalogue.__wrapped__(PUBLIC_PACK)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["clubs"], r"community\.\w+\.groups: 'clubs'; one of family, team, club"),
        (["club"], "groups of the kind 'family'"),
    ],
)
def test_events_are_of_groups_that_there_are(groups: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of group has events, and no event names another kind."""
    load = parsed

    def changed(text: str) -> dict[str, dict[str, dict[str, object]]]:
        sections = load(text)
        return {
            **sections,
            "community": {name: {**row, "groups": groups} for name, row in sections["community"].items()},
        }

    monkeypatch.setattr(events, "parsed", changed)
    with pytest.raises(MasimError, match=message):
        events.event_kinds.__wrapped__(PUBLIC_PACK)
