"""Tests the tuned vendor, rules that know one pack by heart: they answer on that pack, and on no other.

It bounds what a vendor gains by tuning a memory to the public pack (the material that worlds are generated from). The
gain must come from the pack alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from memarena_dataset_quality.answers import gold_values, is_right
from memarena_dataset_quality.tuned_vendor import TunedVendor, key_of, known_frames, pack_of
from memarena_dataset_quality.world import World, read_world

from .worlds import retold


def answered(vendor: TunedVendor, world: World) -> tuple[int, int, int]:
    """Value questions, those that rules answer, and those that they answer rightly."""
    questions = [question for question in world.instances if gold_values(question) and question.evidence_turn_ids]
    answers = [
        (question, vendor.answer(world, question, world.projections[question.ego_agent_id])) for question in questions
    ]
    right = [
        is_right(question, text, world.day_of(question.query_timestamp or 0))
        for question, text in answers
        if text is not None
    ]
    return len(questions), len(right), sum(right)


def test_what_was_learned_answers_on_its_own_pack_alone(small_world: Path, other_small_worlds: list[Path]) -> None:
    """The same world with other words for its things leaves it without an answer."""
    vendor, world = TunedVendor(map(read_world, other_small_worlds)), read_world(small_world)
    things = sorted({key_of(fact)[1] for fact in world.facts} - {""}, key=len, reverse=True)
    pattern = re.compile("|".join(re.escape(thing.removeprefix("the ")) for thing in things), re.IGNORECASE)
    other = retold(world, lambda turn: pattern.sub(lambda match: match.group()[::-1], turn.text))
    question_count, by_rules, right = answered(vendor, world)
    # few: a kind of fact has thirty sentences, and small worlds state it a few times
    assert right > 0.1 * question_count
    assert answered(vendor, other)[1] < 0.25 * by_rules
    assert pack_of(world) == pack_of(read_world(other_small_worlds[0])) is not None


def test_frames_are_known_from_worlds_that_word_statements_alike(small_world: Path) -> None:
    world = read_world(small_world)
    known_count, statement_count = known_frames([world], world)
    assert known_count == statement_count > 0
    backwards = retold(world, lambda turn: " ".join(reversed(turn.text.split(" "))))
    assert known_frames([backwards], world)[0] < statement_count / 2
