"""Checks evidence: it must be in the ego's projection, before the question, and state the gold.

``possible.states`` accepts any reading, so that a finding here is certain, while a missing finding is not a proof.
"""

from __future__ import annotations

from collections.abc import Iterator

from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World
from memarena_dataset.gold import AbstainGold, Gold
from memarena_dataset.model import Instance
from memarena_dataset.values import Value
from memarena_dataset.values.possible import states


def outside_projection(world: World) -> Iterator[Finding]:
    """Yield evidence in sessions in which the ego takes no part."""
    for instance in world.by_ego:
        ego_sessions = frozenset(world.dataset.corpus.session_ids_of(instance.ego_agent_id))
        for session_id in instance.evidence_session_ids:
            if session_id not in ego_sessions:
                reason = f"session {session_id!r} is outside the projection of {instance.ego_agent_id!r}"
                yield world.at(instance, "evidence-outside-projection", "evidence_session_ids", reason)


def after_question(world: World) -> Iterator[Finding]:
    """Yield evidence that is later than the question."""
    for instance in world.by_ego:
        asked_at = instance.query_timestamp
        if asked_at is None:
            continue
        for session in world.evidence(instance):
            if session.start_time > asked_at:
                reason = f"session {session.session_id!r} starts at {session.start_time}, the question is of {asked_at}"
                yield world.at(instance, "evidence-after-question", "evidence_session_ids", reason)
        if instance.evidence_turn_ids:
            for turn in world.evidence_turns(instance):
                if turn.timestamp > asked_at:
                    reason = f"turn {turn.turn_id!r} is said at {turn.timestamp}, the question is of {asked_at}"
                    yield world.at(instance, "evidence-after-question", "evidence_turn_ids", reason)


def without_evidence(world: World) -> Iterator[Finding]:
    """Yield questions that have an answer, but no evidence."""
    for instance in world.by_ego:
        if not instance.evidence_session_ids and not isinstance(instance.gold, AbstainGold):
            reason = "empty; the sessions that hold the answer are expected"
            yield world.at(instance, "no-evidence", "evidence_session_ids", reason)


def without_types(world: World) -> Iterator[Finding]:
    """Yield golds without typed values, which the other checks and the value judge need."""
    for instance in world.by_ego:
        for field in missing_types(instance.gold):
            reason = "missing; typed gold is expected in this profile"
            yield world.at(instance, "untyped-gold", f"ground_truth.{field}", reason)


def missing_types(gold: Gold) -> Iterator[str]:
    """Yield the fields of a gold that lack their typed value."""
    yield from (field for field in gold.typed_fields if not getattr(gold, field))


def gold_outside_evidence(world: World) -> Iterator[Finding]:
    """Yield gold values that the evidence does not state in any reading."""
    for instance in world.by_ego:
        if not instance.evidence_session_ids:
            continue
        passages = world.passages(instance)
        for field, value in stated_values(instance):
            if not states(value, passages):
                reason = f"the evidence does not state {shown(value)}"
                yield world.at(instance, "value-not-in-evidence", f"ground_truth.{field}", reason)


def insufficient_turns(world: World) -> Iterator[Finding]:
    """Yield instances for which one turn from each group of sufficient turns does not state the gold."""
    for instance in world.by_ego:
        for chosen in _choices(instance):
            passages = world.passages(instance, chosen)
            for _, value in stated_values(instance):
                if not states(value, passages):
                    reason = f"{', '.join(sorted(chosen))} alone do not state {shown(value)}"
                    yield world.at(instance, "turns-do-not-suffice", "sufficient_turn_ids", reason)
                    break


def _choices(instance: Instance) -> Iterator[frozenset[str]]:
    """Yield choices of turn ids: each turn of each group once, with the first turn of every other group."""
    first = [group[0] for group in instance.sufficient_turn_ids]
    chosen = {
        frozenset((*first[:position], turn_id, *first[position + 1 :]))
        for position, group in enumerate(instance.sufficient_turn_ids)
        for turn_id in group
    }
    yield from sorted(chosen, key=sorted)


def stated_values(instance: Instance) -> Iterator[tuple[str, Value]]:
    """Yield the values that the evidence of an instance must state, each with the field of the gold."""
    gold = instance.gold
    yield from ((field, value) for field in gold.evidence_fields for value in getattr(gold, field))


def shown(value: Value) -> str:
    """Format a value for a message: ``amount '640.0 euros'``."""
    parts = value.model_dump(exclude={"type", "aliases"}, exclude_none=True)
    return f"{value.type} {' '.join(str(part) for part in parts.values())!r}"
