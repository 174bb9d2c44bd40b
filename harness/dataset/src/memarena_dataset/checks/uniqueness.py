"""Checks that a question has one right answer, and does not contain it.

With a second right answer, a memory that returns it would count as wrong; with the answer in the question, no memory is
needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from memarena_dataset.checks.evidence import shown
from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World, fact_id_of, stem_of
from memarena_dataset.gold import AbstainGold, ConflictGold
from memarena_dataset.model import Fact, Family, Instance
from memarena_dataset.values import NameValue, PlaceValue, TermValue, Value
from memarena_dataset.values.phrases import normal, phrase_occurs, spellings
from memarena_dataset.values.possible import Passage, names_value, states

_VALUE: TypeAdapter[Value] = TypeAdapter(Value)


def abstain_claim_occurs(world: World) -> Iterator[Finding]:
    """Yield abstain items whose claim occurs in the ego's projection, at any time, as both protocols must agree."""
    for instance in world.by_ego:
        if not isinstance(instance.gold, AbstainGold) or not instance.gold.claim:
            continue
        for window in world.windows(instance.ego_agent_id):
            if all(_occurs(value, window.words, world, window.time) for value in instance.gold.claim):
                claim = " and ".join(shown(value) for value in instance.gold.claim)
                reason = f"{claim} does come up, at {window.where!r}"
                yield world.at(instance, "abstain-claim-occurs", "ground_truth.claim", reason)
                break


def _occurs(value: Value, words: str, world: World, time: float) -> bool:
    if isinstance(value, NameValue | PlaceValue | TermValue):
        return any(phrase_occurs(form, words) for form in spellings(value))
    return states(value, [Passage(words, world.date_of(time))])


def asked_twice(world: World) -> Iterator[Finding]:
    """Yield instances with the same ego, family, fact, asker and day as an earlier one."""
    first_of: dict[tuple[object, ...], Instance] = {}
    for instance in world.by_ego:
        fact_id = fact_id_of(instance)
        if fact_id is None:
            continue
        day = world.dataset.question_day(instance)
        key = (instance.ego_agent_id, instance.family, fact_id, instance.asker_agent_id, day)
        earlier = first_of.setdefault(key, instance)
        if earlier is not instance:
            reason = f"asks for {fact_id!r} like {earlier.instance_id!r}: same ego, family, asker and day"
            yield world.at(instance, "asked-twice", "metadata.fact_id", reason)


def rival_value(world: World) -> Iterator[Finding]:
    """Yield questions for whose fact another session of the projection states a different value.

    Needs ``facts.jsonl``. The whole projection counts, so that the gold holds under both protocols.
    """
    for instance in world.by_ego:
        if isinstance(instance.gold, ConflictGold | AbstainGold):
            continue
        ego_sessions = frozenset(world.dataset.corpus.session_ids_of(instance.ego_agent_id))
        for fact in world.facts_by_id.get(fact_id_of(instance) or "", ()):
            rivals = world.facts_by_subject[fact.subject, fact.attribute, fact.scope]
            replaced = _replaced_by(fact, world.facts_by_id)
            rival = next(
                (
                    other
                    for other in rivals
                    if other.session_id in ego_sessions
                    and other.fact_id not in replaced
                    and _canonical(other.value) != _canonical(fact.value)
                ),
                None,
            )
            if rival is not None:
                reason = f"session {rival.session_id!r} states another value for {fact.subject}, {fact.attribute}"
                yield world.at(instance, "other-value-stated", "metadata.fact_id", reason)
                break


def _replaced_by(fact: Fact, by_id: Mapping[str, tuple[Fact, ...]]) -> frozenset[str]:
    """Return the ids of all facts that a fact supersedes, directly or through others."""
    replaced: set[str] = set()
    following = fact.supersedes
    while following is not None and following not in replaced:
        replaced.add(following)
        following = next((older.supersedes for older in by_id.get(following, ())), None)
    return frozenset(replaced)


def _canonical(value: Any) -> str:
    """Return a value as normalised text, by which texts, numbers and typed values are compared."""
    if isinstance(value, Mapping):
        try:
            typed = _VALUE.validate_python(value)
        except ValidationError:
            return normal(str(sorted(value.items(), key=str)))
        value = " ".join(str(part) for part in typed.model_dump(exclude={"type", "aliases", "unit"}).values())
    if isinstance(value, bool | int | float):
        value = float(value)
    return normal(str(value))


def query_holds_gold(world: World) -> Iterator[Finding]:
    """Yield questions that contain their own gold, or that of a sibling (same ego, same fact)."""
    siblings: defaultdict[tuple[str, str], list[Instance]] = defaultdict(list)
    for instance in world.by_ego:
        siblings[instance.ego_agent_id, fact_id_of(instance) or instance.instance_id].append(instance)
    for family in siblings.values():
        for asking in family:
            said_on = world.date_of(world.asked_until(asking) - 1)
            for answered in family:
                for value in _given_away(answered):
                    if names_value(value, stem_of(asking), said_on):
                        whose = "its own gold" if answered is asking else f"the gold of {answered.instance_id!r}"
                        yield world.at(asking, "query-holds-gold", "query", f"contains {whose}: {shown(value)}")


def _given_away(instance: Instance) -> tuple[Value, ...]:
    gold = instance.gold
    if instance.family is Family.TEMPORAL and getattr(gold, "attribute", None) == "ordering":
        return ()  # the question must name the things to be ordered
    return gold.stated_values
