"""Draws the facts of each person from the world's seed, so that a fact is the same whenever it is needed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta

from memarena_dataset.values import DateValue, NameValue, PlaceValue, SetValue, TermValue

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import Attribute, Catalogue, base, did
from memarena_masim.facts.values import SpokenValue, date_words
from memarena_masim.plan.state import Fact, FactKind
from memarena_masim.rng import Stream
from memarena_masim.world.model import Group, World

GUARDED_SHARE = 0.4
"""Share of the confidential, but not sensitive details that are reserved for permission questions."""


def opaque(prefix: str, *parts: str | int) -> str:
    """Return an opaque id: ``prefix`` and twelve hex digits of a hash of ``parts``."""
    name = "\x1f".join(map(str, parts))
    return f"{prefix}_{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"


class FactSource:
    """Makes the facts of a world, each from its own random stream."""

    def __init__(self, config: WorldConfig, catalogue: Catalogue) -> None:
        self._config = config
        self._catalogue = catalogue
        self._details: dict[tuple[str, str, str], Fact] = {}
        self._versions: dict[str, SpokenValue] = {}

    def detail(self, subject: str, attribute: Attribute, item: str, day: int = 0) -> Fact:
        """Return the fact of a person, attribute and item: drawn at the first call, with dates after that ``day``."""
        key = (subject, attribute.key, item)
        if key not in self._details:
            stream = Stream(self._config.key, "fact", *key)
            value = attribute.kind.draw(stream, self._config.dates_from(day))
            guarded = bool(attribute.sensitive) or (attribute.confidential and stream.chance(GUARDED_SHARE))
            self._details[key] = Fact(
                fact_id=opaque("fact", self._config.key, *key),
                kind=FactKind.DETAIL,
                subject=subject,
                attribute=attribute.key,
                item=item,
                value=value,
                category=attribute.category,
                sensitive=attribute.sensitive,
                guarded=guarded,
            )
        return self._details[key]

    def changed(self, fact: Fact, day: int) -> SpokenValue:
        """Return a different value for a detail: another person's version of it, first stated on ``day``."""
        if fact.fact_id not in self._versions:
            kind = self._catalogue.attributes[fact.attribute].kind
            stream = Stream(self._config.key, "version", fact.fact_id)
            self._versions[fact.fact_id] = kind.other(stream, self._config.dates_from(day), fact.value)
        return self._versions[fact.fact_id]

    def later(self, fact: Fact, day: int) -> Fact:
        """Return the fact that replaces a detail on ``day``: another value, its own id, and ``supersedes``."""
        kind = self._catalogue.attributes[fact.attribute].kind
        stream = Stream(self._config.key, "change", fact.fact_id)
        return replace(
            fact,
            fact_id=opaque("fact", self._config.key, "change", fact.fact_id),
            value=kind.other(stream, self._config.dates_from(day), fact.value),
            supersedes=fact.fact_id,
        )

    def home(self, world: World, subject: str) -> Fact:
        """Return the fact in which part of town a person lives."""
        district = world.places[world.person(subject).home_id].name.removeprefix("a home in ")
        return self._community(subject, "home_location", "", SpokenValue(PlaceValue(name=district), district))

    def work(self, world: World, subject: str) -> Fact:
        """Return the fact where a person works."""
        workplace = world.places[world.person(subject).work_id].name
        return self._community(subject, "work_location", "", SpokenValue(PlaceValue(name=workplace), workplace))

    def membership(self, group: Group, member: str) -> Fact:
        """Return the fact that a person belongs to a group. The group is the value."""
        return self._community(
            member, "group_membership", group.name, SpokenValue(TermValue(text=group.name), group.name)
        )

    def role(self, group: Group, member: str) -> Fact:
        """Return the fact which role a person has in a group."""
        title = dict(group.roles)[member]
        return self._community(member, "group_role", group.name, SpokenValue(TermValue(text=title), title))

    def group_place(self, world: World, group: Group) -> Fact:
        """Return the fact where a group meets. The group is the subject."""
        location = world.places[group.place_id].name
        return self._community(
            group.group_id, "group_place", group.name, SpokenValue(PlaceValue(name=location), location)
        )

    def group_members(self, world: World, group: Group) -> Fact:
        """Return the fact who the members of a group are. The group is the subject."""
        names = [world.person(member).name for member in group.members]
        value = SetValue(members=tuple(NameValue(name=name) for name in names))
        return self._community(group.group_id, "group_members", group.name, SpokenValue(value, " and ".join(names)))

    def _community(self, subject: str, attribute: str, item: str, value: SpokenValue) -> Fact:
        return Fact(
            fact_id=opaque("fact", self._config.key, subject, attribute, item),
            kind=FactKind.COMMUNITY,
            subject=subject,
            attribute=attribute,
            item=item,
            value=value,
            category="community",
        )

    def happening(self, subject: str, phrase: str, day: int) -> Fact:
        """Return the fact that a person did something on a day."""
        moment = self._config.calendar_epoch + timedelta(days=day)
        return Fact(
            fact_id=opaque("fact", self._config.key, subject, "happening", phrase),
            kind=FactKind.HAPPENING,
            subject=subject,
            attribute="date",
            item=base(phrase),
            value=SpokenValue(DateValue(date=moment.isoformat()), date_words(moment)),
            category="happening",
            happened=moment,
            fate=did(phrase),
        )

    def find(self, subject: str, source: str) -> Fact:
        """Return the fact that a person got a thing from ``source``, with what became of it."""
        stream = Stream(self._config.key, "find", subject, source)
        thing, fate = stream.pick(self._catalogue.finds), stream.pick(self._catalogue.fates)
        return Fact(
            fact_id=opaque("fact", self._config.key, subject, "find", source),
            kind=FactKind.FIND,
            subject=subject,
            attribute="find",
            item=source,
            value=SpokenValue(TermValue(text=thing), thing),
            category="possession",
            fate=did(fate),
        )

    def tie(self, subject: str, other: str, friends: bool) -> Fact:
        """Return the fact whether two people are friends."""
        words = "friends" if friends else "not friends"
        return Fact(
            fact_id=opaque("fact", self._config.key, subject, "tie", other),
            kind=FactKind.TIE,
            subject=subject,
            attribute="tie",
            item=other,
            value=SpokenValue(TermValue(text=words), words),
            category="tie",
        )
