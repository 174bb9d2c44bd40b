"""Measures shortcuts through the ego's history: answers found by order or count of mentions, without understanding.

For cloze questions (D1), they choose the option that came up last or most often, over all turns or over those by or
about the person whom the question names. Two more figures count golds that a careful reader could dispute: a reference
(D4) to a thing of whose name the ego heard of another, and a date given in whole weeks, which may be any day of a week.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memarena_dataset.gold import AnaphoraGold, ClozeGold
from memarena_dataset.model import Family, Instance, Turn
from memarena_dataset.values.phrases import normal, phrase_occurs

from memarena_dataset_quality.world import World

_NUMBER = r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d+|a (?:few|couple of)|some|many)"
_VAGUE_WEEK = re.compile(rf"\b{_NUMBER} weeks? ago\b(?! to the day)", re.IGNORECASE)
"""``three weeks ago`` may mean any day of a week; ``three weeks ago to the day`` means a single day."""


@dataclass(frozen=True, slots=True)
class ClozeShortcuts:
    """Shares of cloze questions that are answered by choosing an option by its mentions; ties count by chance.

    ``last`` and ``most_often`` use all turns, ``of_the_person`` chooses the option named in most turns by or about
    the person whom the question names.
    """

    questions: int
    last: float
    most_often: float
    of_the_person: float


def cloze_shortcuts(worlds: Iterable[World]) -> ClozeShortcuts | None:
    """Measure over the history up to the end of each question's day. None if there is no cloze question."""
    questions, last, most_often, of_the_person = 0, 0.0, 0.0, 0.0
    for world in worlds:
        talks = {ego: [(turn, normal(turn.text)) for turn in turns] for ego, turns in world.projections.items()}
        for instance in world.instances:
            if isinstance(instance.gold, ClozeGold):
                until = _asked_until(world, instance)
                turns = [pair for pair in talks.get(instance.ego_agent_id, ()) if pair[0].timestamp < until]
                mentions = [[index for index, (_, text) in enumerate(turns) if phrase_occurs(option, text)]
                            for option in instance.gold.options]  # fmt: skip
                right = instance.gold.options.index(instance.gold.answer_text)
                theirs = _by_or_about(world, instance, turns)
                questions += 1
                last += _hit([indices[-1] if indices else -1 for indices in mentions], right)
                most_often += _hit([len(indices) for indices in mentions], right)
                of_the_person += _hit([len(theirs.intersection(indices)) for indices in mentions], right)
    return (
        ClozeShortcuts(questions, last / questions, most_often / questions, of_the_person / questions)
        if questions
        else None
    )


def _by_or_about(world: World, instance: Instance, turns: Sequence[tuple[Turn, str]]) -> frozenset[int]:
    """Return the indices of the turns that the person of a question says, or that name them; for an ego, also those its
    assistant says.
    """
    ego, stem = instance.ego_agent_id, normal(instance.query.split("\n")[0])
    people = [agent_id for agent_id in world.projections if not agent_id.startswith("assistant_")]
    people_named = [agent_id for agent_id in people if phrase_occurs(world.name(agent_id).split()[0], stem)]
    person = people_named[0] if people_named else ego
    speakers = {person} if people_named else {ego, f"assistant_{ego}"}
    first_name = world.name(person).split()[0]
    return frozenset(
        index
        for index, (turn, text) in enumerate(turns)
        if turn.speaker_id in speakers or phrase_occurs(first_name, text)
    )


def _asked_until(world: World, instance: Instance) -> int:
    return world.day_count if instance.query_timestamp is None else int(instance.query_timestamp) + 1


def _hit(scores: Sequence[int], right: int) -> float:
    """Return the chance that choosing the highest score, with ties at random, gives the right option."""
    best = max(scores)
    return 1 / scores.count(best) if scores[right] == best else 0.0


def ambiguous_references(worlds: Iterable[World]) -> tuple[int, int] | None:
    """Count the questions about a reference whose ego heard of another thing of the same name, and all such questions.

    None if there are no planned statements or no such question.
    """
    return _counted(worlds, Family.ANAPHORA, _is_ambiguous)


def _is_ambiguous(world: World, instance: Instance) -> bool:
    assert isinstance(instance.gold, AnaphoraGold)
    heard = {turn.turn_id for turn in world.projections[instance.ego_agent_id]}
    fact_id = instance.metadata.get("fact_id")
    referent = instance.gold.referent
    return any(
        fact.fact_id != fact_id
        and fact.turn_id in heard
        and isinstance(fact.value, dict)
        and fact.value.get("text") == referent
        for fact in world.facts
    )


def vague_dates(worlds: Iterable[World]) -> tuple[int, int] | None:
    """Count the questions about time whose evidence has a date in whole weeks, and all questions about time."""
    return _counted(worlds, Family.TEMPORAL, _is_vague)


def _is_vague(world: World, instance: Instance) -> bool:
    return any(_VAGUE_WEEK.search(turn.text) for turn, _ in world.evidence(instance))


def _counted(
    worlds: Iterable[World], family: Family, is_faulty: Callable[[World, Instance], bool]
) -> tuple[int, int] | None:
    faults = [
        is_faulty(world, instance)
        for world in worlds
        if world.facts
        for instance in world.instances
        if instance.family is family
    ]
    return (sum(faults), len(faults)) if faults else None
