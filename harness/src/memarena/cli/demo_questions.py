"""Which questions the demonstration asks: two of each family, of as few people as possible, always the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memarena_dataset.gold import AbstainGold, PermissionGold
from memarena_dataset.model import Family, Instance

from memarena.execution.errors import RunError

FAMILIES = tuple(family for family in Family if family is not Family.WITNESS)
PER_FAMILY = 2


def _abstains(instance: Instance) -> bool:
    return isinstance(instance.gold, AbstainGold)


def _withholds(instance: Instance) -> bool:
    return isinstance(instance.gold, PermissionGold) and instance.gold.expected_action == "withhold"


_HALVES: dict[Family, Callable[[Instance], bool]] = {Family.CONFABULATION: _abstains, Family.PERMISSION: _withholds}
"""Families of which one question of either sort is asked: to abstain and to answer, to withhold and to disclose."""


def choose_questions(instances: Sequence[Instance]) -> tuple[str, ...]:
    """Instance ids, two per family, in the order of families.

    Every person that is asked costs the ingest of a history, so people are taken by how many questions they can still
    fill, then by id. Raises :class:`RunError` if a family has too few.
    """
    slots = [(family, half) for family in FAMILIES for half in range(PER_FAMILY)]
    open_slots, chosen = list(slots), dict[tuple[Family, int], str]()
    people = sorted({instance.ego_agent_id for instance in instances})
    while open_slots and people:
        fits = {ego: _filled(open_slots, [one for one in instances if one.ego_agent_id == ego]) for ego in people}
        best = max(people, key=lambda ego: (len(fits[ego]), [-ord(letter) for letter in ego]))
        chosen |= fits[best]
        open_slots = [slot for slot in open_slots if slot not in chosen]
        people.remove(best)
    if open_slots:
        family = open_slots[0][0].value
        raise RunError(f"the demonstration needs {PER_FAMILY} questions of each family, of {family} there are too few")
    return tuple(chosen[slot] for slot in slots)


def _filled(slots: Sequence[tuple[Family, int]], own: Sequence[Instance]) -> dict[tuple[Family, int], str]:
    """Slots that a person's questions fill, each question at most one."""
    found: dict[tuple[Family, int], str] = {}
    for family, half in slots:
        is_half = _HALVES.get(family)
        for instance in own:
            fits = instance.family is family and instance.instance_id not in found.values()
            if fits and (is_half is None or is_half(instance) == (half == 0)):
                found[family, half] = instance.instance_id
                break
    return found
