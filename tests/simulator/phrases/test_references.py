"""What answers take for granted: words of choices and of optional sentences have to have been said."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_masim.errors import MasimError
from memarena_masim.facts import catalogue as module
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.phrases.library import library
from memarena_masim.phrases.references import needs_of, stems
from memarena_masim.phrases.scenes import read_topic

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
tell = ["There was a moth in my {velvet trousers|knitted waistcoat}.", "+The exterminator wanted $cost."]
friend = ["A moth, of all things.", "Your waistcoat!", "And $cost for the exterminator.", "In a wardrobe?"]
assistant = ["Moths like {velvet|wool}.", "Shall I ring the exterminator?"]
"""


def test_words_of_choices_and_of_optional_sentences_are_needed(tmp_path: Path) -> None:
    """What the teller always says is not, nor what an answer says by choice itself."""
    path = tmp_path / "clothing.toml"
    path.write_text(SCENE + 4 * BEAT, encoding="utf-8")
    (scene,) = read_topic(path).scenes
    needs = needs_of([*library().scenes.values(), scene])
    friend = [set(), stems("waistcoat"), {"$cost", *stems("exterminator")}, set()]
    assert [set(one) for one in needs["clothing.moth", 0, "friend"]] == friend
    assert [set(one) for one in needs["clothing.moth", 0, "assistant"]] == [set(), stems("exterminator")]


def test_every_beat_has_an_answer_that_needs_nothing() -> None:
    """So that an answer is never empty."""
    assert all(any(not needed for needed in answer) for answer in library().needs.values())


@pytest.mark.parametrize("name", ["details", "sensitive", "community", "happenings"])
def test_a_kind_of_fact_without_a_reaction_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its file and section."""
    read = module._toml

    def without(asked: str) -> dict[str, dict[str, object]]:
        rows = read(asked)
        if asked == name:
            next(row for row in rows.values() if "react" in row).pop("react")
        return rows

    monkeypatch.setattr(module, "_toml", without)
    with pytest.raises(MasimError, match=rf"facts/{name}\.toml: \w+: react is missing"):
        catalogue.__wrapped__("all")


def test_reactions_hold_for_whoever_a_fact_is_about() -> None:
    """They name neither the one who told it nor its value: no slot."""
    rules = catalogue().bank.rules
    lines = [line for name, rule in rules.items() if name.startswith("react.") for line in rule.alternatives]
    assert len(lines) > 60
    assert not [line for line in lines if catalogue().bank.slots_of(line)]
