"""Tests questions/phrasing.py: things are named in three ways, in the configured shares, and people unambiguously."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.checks.overlap import function_words
from memarena_dataset.model import WORDINGS
from memarena_dataset.validate import Profile, validate
from memarena_dataset.values.phrases import normal, phrase_occurs, tokens_of
from memarena_masim.config import preset, sized
from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import base, catalogue
from memarena_masim.questions.question_bank import filled, question_bank

from ...support.small_worlds import WorldOf

SEEDS = (111, 112, 113)
NAMED_IN_FULL = "d4_permission"


@pytest.fixture(scope="module")
def worlds(small_world: Path, world_of: WorldOf) -> list[Path]:
    """Worlds of several seeds."""
    return [small_world, *(world_of(preset("tiny", seed)) for seed in SEEDS)]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def instances(world: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((world / "eval_instances").glob("*.jsonl")):
        yield from rows(path)


def stem(row: dict[str, Any]) -> str:
    return str(row["query"]).split("\nA) ", 1)[0]


def thing_of(row: dict[str, Any], facts: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """Return attribute and item of the fact that a question is about."""
    attribute, _, item = facts[row["metadata"]["fact_id"]]["attribute"].partition(": ")
    return attribute, item


def test_wordings_have_the_configured_shares(worlds: list[Path], world_of: WorldOf) -> None:
    """Within two questions in each world; the report has the same counts."""
    described = world_of(sized(preset("tiny", 111), wording="0/0/100"))
    for world in (*worlds, described):
        counts = Counter(row["metadata"]["wording"] for row in instances(world))
        report = json.loads((world / "pipeline_report.json").read_text())
        shares = dict(zip(WORDINGS, report["configuration"]["wording"], strict=True))
        assert {name: report["wording"].get(name, 0) for name in WORDINGS} == {name: counts[name] for name in WORDINGS}
        if world is not described:  # some questions name no thing that could be described
            for name, share in shares.items():
                assert abs(counts[name] - share / 100 * counts.total()) <= 2, (name, counts)
    assert counts["description"] > 0.6 * counts.total()
    assert counts["other_name"] == 0


@pytest.mark.parametrize("shares", ["70/20", "70/20/20", "110/-20/10", "many/few/none"])
def test_invalid_shares_are_refused(shares: str) -> None:
    """The error names the flag and its value."""
    with pytest.raises(MasimError, match=rf"--wording {shares}: three whole numbers that add up to 100"):
        sized(preset("tiny", 1), wording=shares)


def test_a_question_names_its_thing_as_its_wording_says(worlds: list[Path]) -> None:
    """Questions about details have the item itself, one of its other names, or its description."""
    bank = question_bank()
    wording_counts = Counter[str]()
    for world in worlds:
        facts = {row["fact_id"]: row for row in rows(world / "facts.jsonl")}
        for row in instances(world):
            if row["metadata"]["fact_id"] not in facts:
                continue
            attribute, item = thing_of(row, facts)
            if (attribute, item) not in bank.items:
                continue
            wording = row["metadata"]["wording"]
            fitting = bank.items[attribute, item].by(wording, item)
            words = normal(stem(row))
            assert any(phrase_occurs(name.removeprefix("the "), words) for name in fitting), (wording, row["query"])
            wording_counts[wording] += 1
    assert set(wording_counts) == set(WORDINGS)


def test_validate_reports_no_error_and_no_repeated_evidence(worlds: list[Path]) -> None:
    """That is, no warning ``query-repeats-evidence``."""
    for world in worlds:
        validation = validate(world, Profile.FULL)
        assert [str(finding.problem) for finding in validation.errors] == []
        assert [finding for finding in validation.warnings if finding.check == "query-repeats-evidence"] == []


def test_people_are_named_unambiguously(worlds: list[Path]) -> None:
    """People are named by a unique first name, else in full; always in full in permission questions."""
    in_short = 0
    for world in worlds:
        agents = {row["agent_id"]: row["persona"]["name"] for row in rows(world / "agents_personas.jsonl")}
        names = {agent: name for agent, name in agents.items() if not agent.startswith("assistant_")}
        firsts = Counter(name.split()[0] for name in names.values())
        subjects = {row["fact_id"]: row["subject"] for row in rows(world / "facts.jsonl")}
        for row in instances(world):
            subject = subjects.get(row["metadata"]["fact_id"])
            if row["dimension"] == "d8_temporal" or subject not in names or subject == row["ego_agent_id"]:
                continue
            first = names[subject].split()[0]
            short = first in row["query"] and names[subject] not in row["query"]
            assert short or names[subject] in row["query"], row
            assert not short or (firsts[first] == 1 and row["dimension"] != NAMED_IN_FULL), row
            in_short += short
    assert in_short > 50


def test_no_slot_and_no_id_is_left(worlds: list[Path]) -> None:
    """Every template is filled; only a cloze has a gap."""
    for world in worlds:
        for row in instances(world):
            text = row["query"].replace("____", "") if row["dimension"] == "d5_cloze" else row["query"]
            assert not set(text) & set("{}[]|<>$@^_"), row["query"]


def test_questions_are_put_in_many_ways(small_world: Path) -> None:
    """No family is bound to one template: the first two words vary."""
    starts: dict[str, set[str]] = {}
    for row in instances(small_world):
        starts.setdefault(row["dimension"], set()).add(" ".join(row["query"].split()[:2]))
    for family, first_words in starts.items():
        assert len(first_words) >= 3, family


def test_a_description_is_in_other_words() -> None:
    """It lacks a content word of the item, happening or source that it describes."""
    bank = question_bank()
    pairs = [(item, called) for (_, item), called in bank.items.items()]
    pairs += [(base(happening), called) for happening, called in bank.happenings.items()]
    for thing, called in (*pairs, *bank.sources.items()):
        content = set(tokens_of(thing)) - function_words()
        assert not content <= set(tokens_of(base(called.description))), (thing, called.description)


def test_no_other_name_or_description_contains_another_item() -> None:
    """Another item of the same attribute, that is."""
    bank = question_bank()
    for attribute in catalogue().attributes.values():
        for item in attribute.items:
            for other in attribute.items:
                called = bank.items[attribute.key, other]
                for name in (*called.names, called.description) if other != item else ():
                    assert not phrase_occurs(item.removeprefix("the "), normal(name)), (item, name)


def test_every_template_names_whose_fact_it_is() -> None:
    """Each line names the person and the thing, and plain sentences have a slot for the value."""
    for key, words in question_bank().details.items():
        unit = catalogue().attributes[key].kind.unit
        for line in (*words.ask, *words.clause, *words.about, *words.plain, *words.now, *words.earlier):
            slots = {"it": "the ITEM", "own": "$my ITEM", "v": "VALUE", "n": "VALUE"}
            text = filled(line, "told", "Maya Chen", slots)
            assert "Maya Chen" in text, (key, line)
            assert "ITEM" in text, (key, line)
            assert "$" not in text, (key, line, unit)
            assert "(" not in text, (key, line, unit)
        assert all("$v" in line or "$n" in line for line in words.plain), key
