"""Questions in other words: the limits hold, names stay, nothing is given away, and what was dropped is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.checks.overlap import function_words
from memarena_dataset.validate import Profile, validate
from memarena_dataset.values.phrases import tokens_of
from memarena_masim.config import preset
from memarena_masim.engines.overlap_limits import Limits
from memarena_masim.facts.catalogue import base, catalogue
from memarena_masim.questions.question_bank import filled, question_bank

from ...support.small_worlds import WorldOf

SEEDS = (111, 112, 113)


@pytest.fixture(scope="module")
def worlds(small_world: Path, world_of: WorldOf) -> list[Path]:
    """Worlds of several seeds."""
    return [small_world, *(world_of(preset("tiny", seed)) for seed in SEEDS)]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def instances(world: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((world / "eval_instances").glob("*.jsonl")):
        yield from rows(path)


def report(world: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((world / "pipeline_report.json").read_text())["hardening"]
    return found


def test_limits_name_what_is_broken() -> None:
    """Containment, a shared trigram, and neither; function words and names do not count."""
    said = "Maya paid for the brass lamp stand on Monday, then rain fell while trams rattled past shuttered bakeries"
    limits = Limits.of([said], frozenset({"maya"}))
    assert limits.fault("What did Maya pay for the brass lamp?") == "containment"
    assert limits.fault("What sum bought Maya that brass lamp stand, roughly, after haggling hard?") == "trigram"
    assert limits.fault("What sum was handed to the dealer in lights?") is None
    assert Limits.of([], frozenset()).fault("Anything goes here") is None


def test_questions_do_not_repeat_their_evidence(worlds: list[Path]) -> None:
    """What the validator warns of is only what the report says was left: asked in plain words, or over a limit."""
    for world in worlds:
        counts = report(world)
        left = counts.get("left_plain", 0) + sum(count for name, count in counts.items() if name.startswith("kept_"))
        found = validate(world, Profile.FULL)
        warned = {
            str(finding.problem).rsplit("[", 1)[-1]
            for finding in found.warnings
            if finding.check == "query-repeats-evidence"
        }
        assert len(warned) <= left


def test_every_question_is_accounted_for(worlds: list[Path]) -> None:
    """Reworded or left as it was: each question is one of the two, and by far most are reworded."""
    for world in worlds:
        counts = report(world)
        total = sum(1 for _ in instances(world))
        assert counts["reworded"] + counts.get("left_plain", 0) == total
        assert counts["reworded"] > 0.8 * total


def test_names_stay(worlds: list[Path]) -> None:
    """A question about somebody else names them in full."""
    for world in worlds:
        names = {row["agent_id"]: row["persona"]["name"] for row in rows(world / "agents_personas.jsonl")}
        subjects = {row["fact_id"]: row["subject"] for row in rows(world / "facts.jsonl")}
        for row in instances(world):
            subject = subjects.get(row["metadata"]["fact_id"])
            if row["dimension"] == "d8_temporal" or subject not in names or subject == row["ego_agent_id"]:
                continue
            assert names[subject] in row["query"], row


def test_no_slot_and_no_id_is_left(worlds: list[Path]) -> None:
    """Every template is filled; only a cloze has a gap."""
    for world in worlds:
        for row in instances(world):
            stem = row["query"].replace("____", "") if row["dimension"] == "d5_cloze" else row["query"]
            assert not set(stem) & set("{}[]|<>$@^_"), row["query"]


def test_questions_are_put_in_many_ways(small_world: Path) -> None:
    """No family is bound to one template: the first two words vary."""
    starts: dict[str, set[str]] = {}
    for row in instances(small_world):
        starts.setdefault(row["dimension"], set()).add(" ".join(row["query"].split()[:2]))
    for family, found in starts.items():
        assert len(found) >= 3, family


def test_paraphrases_share_no_word_with_what_they_stand_for() -> None:
    """An item, a happening, a source or a fate in other words has none of its content words."""
    bank = question_bank()
    pairs = [(item, other) for (_, item), other in bank.items.items()]
    pairs += [(base(one), base(other)) for one, other in bank.happenings.items()]
    pairs += [*bank.places.items(), *bank.sources.items()]
    pairs += [(base(one), base(other)) for one, other in bank.fates.items()]
    for one, other in pairs:
        shared = set(tokens_of(one)) & set(tokens_of(other)) - function_words()
        assert not shared, (one, other)


def test_paraphrases_tell_items_of_an_attribute_apart() -> None:
    """No two items of an attribute have the same paraphrase."""
    seen: set[tuple[str, str]] = set()
    for (attribute, _), other in question_bank().items.items():
        assert (attribute, other) not in seen
        seen.add((attribute, other))


def test_every_template_names_whose_fact_it_is() -> None:
    """Each clause and each plain sentence names the person and the thing, and leaves room for the value."""
    for key, words in question_bank().details.items():
        unit = catalogue().attributes[key].kind.unit
        for line in (*words.clauses, *words.plain):
            told = filled(line, "told", "Maya Chen", {"it": "the ITEM", "v": "VALUE", "n": "VALUE"})
            assert "Maya Chen" in told and "the ITEM" in told, (key, line)
            assert "$" not in told and "(" not in told, (key, line, unit)
        assert all("$v" in line or "$n" in line for line in words.plain), key
