"""Chooses the bank rules that word a statement and the lines around it, and fills their slots."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from string import Template

from memarena_dataset.values import SetValue

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import Catalogue, PersonForm, in_person
from memarena_masim.facts.values import day_words
from memarena_masim.plan.model import Statement
from memarena_masim.plan.state import Choice, FactKind, Role

_WITHOUT_OPINION = frozenset(("find", "fate", "friends", "not_friends"))
"""Attributes whose statements are answered by lines that name them, instead of by an opinion."""


def frame_of(
    choice: Choice, config: WorldConfig, world_names: dict[str, str], catalogue: Catalogue, day: int
) -> tuple[str, dict[str, str]]:
    """Return the bank rule that words a choice, and the text of each slot."""
    fact = choice.fact
    person: PersonForm = "own" if choice.speaker == fact.subject else "told"
    slots = {"item": fact.item, **choice.value.slots()}
    if fact.kind is FactKind.COMMUNITY:
        slots |= _community_slots(choice, world_names)
        return f"say.{fact.attribute}.own", slots | {"topic": _topic(catalogue, fact.attribute, "you", slots)}
    slots["subject"] = world_names[fact.subject]
    match fact.kind:
        case FactKind.DETAIL:
            attribute = catalogue.attributes[fact.attribute]
            about = in_person(attribute.about, "you" if person == "own" else person)
            slots["about"] = about.replace("$item", fact.item).replace("$subject", slots["subject"])
            slots["topic"] = _topic(catalogue, fact.attribute, "you" if person == "own" else person, slots)
            return f"{'change' if choice.role is Role.CHANGE else 'say'}.{fact.attribute}.{person}", slots
        case FactKind.HAPPENING:
            assert fact.happened is not None
            today = config.calendar_epoch + timedelta(days=day)
            return f"say.happening.{person}", slots | {
                "did": fact.fate,
                "do": fact.item,
                "when": day_words(today, fact.happened),
                "subject_you": "you" if person == "own" else slots["subject"],
                "doing": catalogue.doings[fact.item],
                "topic": catalogue.doings[fact.item],
            }
        case FactKind.FIND:
            key = "fate" if choice.role is Role.FATE else "find"
            return f"say.{key}.{person}", slots | {
                "source": fact.item,
                "did": fact.fate,
                "topic": f"the thing from {fact.item}",
            }
        case _:
            key = "friends" if fact.value.text == "friends" else "not_friends"
            return f"say.{key}.{person}", slots | {"a": world_names[fact.item], "topic": world_names[fact.item]}


def _topic(catalogue: Catalogue, kind: str, form: PersonForm, slots: Mapping[str, str]) -> str:
    """Return what a listener calls a fact: ``your deadline for the tax return``."""
    return Template(in_person(catalogue.topics[kind], form)).safe_substitute(slots)


def kind_of(statement: Statement, catalogue: Catalogue) -> str:
    """Return the attribute that a statement is about; for a happening, its mood."""
    attribute = statement.frame_parts.attribute
    return catalogue.moods[dict(statement.slots)["do"]] if attribute == "happening" else attribute


def more_rule(statement: Statement, catalogue: Catalogue) -> str:
    """Return the rule of the lines that the speaker may add to a statement."""
    form, _, person = statement.frame_parts
    if form == "change":
        return "more.change"
    return "more.told" if person == "told" else f"more.{kind_of(statement, catalogue)}"


def opinion_rule(statement: Statement, catalogue: Catalogue) -> str | None:
    """Return the rule of the opinions that the next speaker may have of a statement; None if there is none."""
    form, attribute, _ = statement.frame_parts
    return None if form == "change" or attribute in _WITHOUT_OPINION else f"react.{kind_of(statement, catalogue)}"


def _community_slots(choice: Choice, names: dict[str, str]) -> dict[str, str]:
    """Return the slots of a statement about a home, a workplace or a group.

    ``others`` lists a group's members without the speaker.
    """
    value = choice.fact.value.value
    others = ""
    if isinstance(value, SetValue):
        ids = {member.name.lower().replace(" ", "_"): member.name for member in value.members if member.type == "name"}
        other_names = [names.get(agent, ids[agent]) for agent in ids if agent != choice.speaker]
        others = (
            f"{', '.join(other_names[:-1])} and {other_names[-1]}" if len(other_names) > 1 else "".join(other_names)
        )
    return {"group": choice.fact.item, "others": others}
