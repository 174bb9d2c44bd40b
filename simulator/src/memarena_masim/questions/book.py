"""Indexes what each ego has heard, for the builders of questions; defines the draft of a question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from memarena_dataset.model import Family
from memarena_dataset.values import Value

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import Attribute, Catalogue, PersonForm
from memarena_masim.plan.state import Fact, FactKind, StatedFact
from memarena_masim.questions.wording import Wanted
from memarena_masim.world.build import strangers
from memarena_masim.world.model import World


@dataclass(slots=True)
class Draft:
    """A question with its gold; ids, times and texts are added when it is written."""

    family: Family
    ego: str
    query: str
    truth: dict[str, Any]
    evidence: tuple[StatedFact, ...]
    fact_id: str
    asker: str | None = None
    difficulty: str = "easy"
    extra: dict[str, Any] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    """Ids of facts that no other question of the ego may ask about."""
    no_evidence: bool = False
    last_day: int = 0
    """The earliest day for the question, if that is later than the day of its last evidence."""
    day: int | None = None
    """The day of the question, if it is fixed already; None: the day is drawn with its lag."""
    wanted: Wanted | None = None
    """Its content, which ``phrasing`` puts into other words; None keeps ``query`` as it is."""


class Book:
    """Index of all statements of a world, by ego and fact. Built once all days are committed.

    ``named`` has the people who come up in each session without being there, by session id.
    """

    def __init__(
        self,
        config: WorldConfig,
        world: World,
        catalogue: Catalogue,
        statements: Sequence[StatedFact],
        named: Mapping[str, Collection[str]],
    ) -> None:
        self.config, self.world, self.catalogue = config, world, catalogue
        self.said = statements
        self.names = {person.agent_id: person.name for person in world.people}
        self.called = _called(config, world, catalogue)
        """Each person's name in questions, by full name: the first name if no other person has it."""
        self.by_fact: dict[str, dict[str, list[StatedFact]]] = {agent: {} for agent in self.names}
        self.by_attribute: dict[tuple[str, str], list[StatedFact]] = defaultdict(list)
        self._about: dict[tuple[str, str, str], int] = defaultdict(int)
        """Number of statements in an ego's sessions, by ego, attribute and item."""
        self._around: dict[str, set[str]] = defaultdict(set)
        """Ids of all people who are present or come up, by session id."""
        self._said_of: dict[str, list[StatedFact]] = defaultdict(list)
        self._said_to: dict[tuple[str, str], list[StatedFact]] = defaultdict(list)
        self._heard_of: dict[str, set[str]] = defaultdict(set)
        self._items: dict[tuple[str, str], set[str]] = defaultdict(set)
        """Ids of the ego's sessions in which an item comes up, by ego and item."""
        self._mentions: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        self.met: dict[str, dict[str, int]] = {agent: {} for agent in self.names}
        """``met[agent][other]``: the first day on which two people talked; filled by the caller."""
        self.outdated: frozenset[str] = frozenset(
            stated.fact.supersedes for stated in statements if stated.fact.supersedes
        )
        """Ids of facts that a later fact replaced."""
        for index, stated in enumerate(statements):
            self._add(stated)
            for ego in stated.people:
                self._mentions[ego, stated.value.text].append((index, stated.day))
        for session_id, others in named.items():
            self._around[session_id].update(others)

    def _add(self, stated: StatedFact) -> None:
        """Add a statement to the indexes of all people who were present."""
        fact = stated.fact
        self._around[stated.session_id].update(stated.people, (fact.subject,), stated.wish.named)
        self._said_of[fact.fact_id].append(stated)
        if fact.kind is FactKind.TIE:
            self._around[stated.session_id].add(fact.item)
        if fact.attribute == "group_members":
            members = next(group.members for group in self.world.groups if group.group_id == fact.subject)
            self._around[stated.session_id].update(members)
        for ego in stated.people:
            self.by_fact[ego].setdefault(fact.fact_id, []).append(stated)
            self.by_attribute[ego, fact.attribute].append(stated)
            self._said_to[ego, stated.speaker].append(stated)
            self._about[ego, fact.attribute, fact.item] += 1
            self._items[ego, fact.item].add(stated.session_id)
            if fact.kind is FactKind.DETAIL:
                self._heard_of[ego].add(fact.subject)

    # ---------------------------------------------------------------- facts

    def speaks(self, agent: str) -> bool:
        """Whether the agent stated, heard or met anything; in a very small world some agents never meet another."""
        return bool(self.by_fact[agent] or self.met[agent])

    def statements(self, ego: str, fact_id: str) -> list[StatedFact]:
        """Return all statements of a fact in an ego's sessions, oldest first."""
        return self.by_fact[ego].get(fact_id, [])

    def mentions(self, ego: str, value: str) -> list[tuple[int, int]]:
        """Return the statements of any fact in the ego's sessions that give a value, as (index among all, day)."""
        return self._mentions[ego, value]

    def contested(self, ego: str, fact: Fact) -> bool:
        """Whether the ego heard or stated another value for ``fact``."""
        return any(stated.value.text != fact.value.text for stated in self.statements(ego, fact.fact_id))

    def heard_of_another(self, ego: str, fact: Fact) -> bool:
        """Whether the ego's sessions hold another fact with the same attribute and value."""
        return any(
            other.fact.fact_id != fact.fact_id and other.value.text == fact.value.text
            for other in self.by_attribute[ego, fact.attribute]
        )

    def interference(self, ego: str, fact: Fact) -> int:
        """Count near-duplicates in the ego's sessions: statements of other facts with the same attribute and item."""
        return self._about[ego, fact.attribute, fact.item] - len(self.statements(ego, fact.fact_id))

    def absent(self, ego: str, subject: str, item: str) -> bool:
        """Whether no session of the ego involves both a person and an item."""
        return all(subject not in self._around[session_id] for session_id in self._items.get((ego, item), ()))

    def said_to(self, listener: str, speaker: str) -> list[StatedFact]:
        """Return the statements that a person made in a listener's presence."""
        return self._said_to[listener, speaker]

    def said_of(self, fact_id: str) -> list[StatedFact]:
        """Return all statements of a fact in the world."""
        return self._said_of[fact_id]

    def heard_of(self, ego: str) -> list[str]:
        """Return the ids of the other people about whom an ego heard a detail, sorted."""
        return sorted(self._heard_of[ego] - {ego})

    # ---------------------------------------------------------------- words

    def form(self, ego: str, fact: Fact, asker: str | None) -> PersonForm:
        """Return how a question refers to the fact's subject: ``own`` if the ego asks about themselves."""
        return "own" if fact.subject == ego == asker else "told"

    def wanted(self, kind: str, ego: str, fact: Fact, asker: str | None, **slots: str) -> Wanted:
        """Return the content of a question of ``kind`` about a fact; ``slots`` are more words that it needs."""
        form = self.form(ego, fact, asker)
        return Wanted(kind, fact.attribute, fact.item, form, self.names[fact.subject], tuple(sorted(slots.items())))

    def attribute(self, fact: Fact) -> Attribute:
        """Return the attribute of a detail."""
        return self.catalogue.attributes[fact.attribute]

    def ask(self, ego: str, fact: Fact, asker: str | None) -> str:
        """Return the plain question about a detail."""
        attribute = self.attribute(fact)
        form = self.form(ego, fact, asker)
        return attribute.fill(attribute.ask, form, fact.item, subject=self.names[fact.subject])

    def about(self, ego: str, fact: Fact, asker: str | None) -> str:
        """Return a clause that names a detail: ``what Maya Chen paid for the desk lamp``."""
        attribute = self.attribute(fact)
        form = self.form(ego, fact, asker)
        return attribute.fill(attribute.about, form, fact.item, subject=self.names[fact.subject])

    def plain(self, ego: str, fact: Fact, value: str, number: str) -> str:
        """Return a detail as a plain sentence, with ``value`` and ``number`` as the words for its value."""
        attribute = self.attribute(fact)
        form = self.form(ego, fact, ego)
        return attribute.fill(attribute.plain, form, fact.item, value, number, self.names[fact.subject])


def _called(config: WorldConfig, world: World, catalogue: Catalogue) -> dict[str, str]:
    """Return the name that questions use for each person, by full name: the first name if it is unique."""
    others = [attribute.kind.choices for attribute in catalogue.attributes.values() if attribute.kind.type == "name"]
    all_names = [*(person.name for person in world.people), *chain.from_iterable(others)]
    first_names = Counter(name.split()[0].lower() for name in all_names)
    first_names.update(agent_id.split("_")[0] for agent_id in strangers(config, world))
    firsts = {person.name: person.name.split()[0] for person in world.people}
    return {name: first if first_names[first.lower()] == 1 else name for name, first in firsts.items()}


def typed(*values: Value) -> list[dict[str, Any]]:
    """Return values as rows of a file."""
    return [value.model_dump(exclude_none=True) for value in values]


def span_difficulty(first: StatedFact, last: StatedFact, sessions: int) -> str:
    """Return the difficulty of a conflict or anaphora question, by the days and sessions that its evidence spans."""
    days = last.day - first.day
    if days <= 1 and sessions <= 2:
        return "easy"
    return "medium" if days <= 4 and sessions <= 4 else "hard"


def appearance_difficulty(appearances: int) -> str:
    """Return the difficulty of a metadata question, from the number of times that its subject came up."""
    return "easy" if appearances == 1 else "medium" if appearances == 2 else "hard"
