"""D6: all cases that the permission rules decide, and decide the same way at any later time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from memarena_dataset.permission_rules import AccessCase, Action, decide
from memarena_dataset.value_matching import names_value

from memarena_masim.plan.state import Fact, FactKind, Role, StatedFact
from memarena_masim.questions.book import Book
from memarena_masim.rng import Stream
from memarena_masim.world.build import relation, strangers

AskerKind = Literal["known", "stranger", "anonymous", "self"]
PLAIN_SHARE = 0.15
"""Share of the details that nobody said a level of that are taken for cases of rule 6, at least."""
PLAIN_PER_ITEM = 2
"""So many of them there are for each wanted item, if the world has them: small worlds have little else to disclose."""
ASKERS_TRIED = 20


@dataclass(frozen=True, slots=True)
class Case:
    """A decidable case: the ego's fact, the asker, the right action, the earliest day on which it can be asked."""

    ego: str
    fact: Fact
    stated: StatedFact
    asker: str | None
    kind: AskerKind
    earliest: int
    action: Action
    rule: int
    relation: str
    """What the asker is to the ego, as the question says it; "" for the ego and for nobody in particular."""
    tie: StatedFact | None = None

    @property
    def group(self) -> tuple[str, str]:
        """What must not tell the action: who asks, as far as the question says it, and the category."""
        return self.relation or self.kind, self.category

    @property
    def category(self) -> str:
        """The class of a sensitive fact, the category of another one."""
        return self.fact.sensitive or self.fact.category

    @property
    def about(self) -> tuple[str, str]:
        """Ego and fact."""
        return self.ego, self.fact.fact_id


def all_cases(book: Book, stream: Stream, taken: set[tuple[str, str]], wanted: int) -> Iterator[Case]:
    """Decidable cases, in random order of statements. Facts in ``taken`` are left out, with their ego.

    ``wanted`` items are to be made of them.
    """
    plain = sum(_is_told(stated) and not stated.fact.guarded for stated in book.said)
    share = max(PLAIN_SHARE, PLAIN_PER_ITEM * wanted / max(plain, 1))
    outsiders = strangers(book.config, book.world)
    people = sorted(book.names)
    ties = _ties(book)
    for stated in stream.shuffled(list(book.said)):
        for ego in stated.people:
            if not _usable(book, ego, stated, stream, share) or (ego, stated.fact.fact_id) in taken:
                continue
            named = [ties_of for ties_of in _tied(ties, ego, stated.fact.subject) if ties_of in book.names]
            askers: list[str | None] = [None, *named, *stream.sample(people, ASKERS_TRIED)]
            askers += _near(outsiders, ego, stream)
            for asker in dict.fromkeys(askers):
                case = _decided(book, ego, stated, asker, ties, asker in outsiders)
                if case is not None:
                    yield case


def _near(outsiders: list[str], ego: str, stream: Stream) -> list[str]:
    """Two strangers who turn up again and again with an ego, and one who may be anybody."""
    start = sum(map(ord, ego)) % len(outsiders)
    return [outsiders[start], outsiders[(start + 1) % len(outsiders)], stream.pick(outsiders)]


def self_cases(book: Book, stream: Stream, taken: set[tuple[str, str]]) -> Iterator[Case]:
    """Cases of rule 1: the owner asks for what they heard, or the subject for what they told."""
    for stated in stream.shuffled(list(book.said)):
        ego = next((person for person in stated.people if person != stated.speaker), None)
        if ego is None or not _usable(book, ego, stated, stream, PLAIN_SHARE) or (ego, stated.fact.fact_id) in taken:
            continue
        asker = ego if stream.chance(0.5) else stated.fact.subject
        owner = asker == ego
        related = "" if owner else relation(book.world, ego, asker)
        yield Case(ego, stated.fact, stated, asker, "self", stated.day, "disclose", 1, related)


def _is_told(stated: StatedFact) -> bool:
    return stated.fact.kind is FactKind.DETAIL and stated.role is Role.TELL


def _usable(book: Book, ego: str, stated: StatedFact, stream: Stream, plain_share: float) -> bool:
    fact = stated.fact
    if not _is_told(stated) or ego == fact.subject:
        return False
    if (
        book.catalogue.everyday(fact.value.value)
        or fact.fact_id in book.outdated
        or len(book.statements(ego, fact.fact_id)) != 1
    ):
        return False
    return fact.guarded or stream.chance(plain_share)


def _ties(book: Book) -> dict[tuple[str, str], dict[str, StatedFact]]:
    """What an ego heard of somebody's friends: under (ego, one), by the other; both ways."""
    found: dict[tuple[str, str], dict[str, StatedFact]] = {}
    for stated in book.said:
        if stated.fact.kind is FactKind.TIE:
            one, other = stated.fact.subject, stated.fact.item
            for ego in stated.people:
                if ego not in (one, other):
                    found.setdefault((ego, one), {}).setdefault(other, stated)
                    found.setdefault((ego, other), {}).setdefault(one, stated)
    return found


def _tied(ties: dict[tuple[str, str], dict[str, StatedFact]], ego: str, subject: str) -> list[str]:
    return list(ties.get((ego, subject), {}))


def _decided(
    book: Book,
    ego: str,
    stated: StatedFact,
    asker: str | None,
    ties: dict[tuple[str, str], dict[str, StatedFact]],
    outsider: bool,
) -> Case | None:
    fact = stated.fact
    if asker in (ego, fact.subject):
        return None
    kind: AskerKind = "anonymous" if asker is None else "stranger" if outsider else "known"
    since = 0
    if kind == "known":
        assert asker is not None
        met = book.met[ego].get(asker)
        if book.world.edge(ego, asker).layer < 0:
            if met is None:
                return None
            since = met
    tie = ties.get((ego, fact.subject), {}).get(asker or "") if fact.level == "friends_only" else None
    decision = decide(
        AccessCase(
            asker=asker,
            ego=ego,
            subject=fact.subject,
            heard_from_subject=kind == "known" and asker is not None and _heard(book, asker, fact),
            level=fact.level,
            friends=tie.value.text == "friends" if tie else None,
            sensitive=bool(fact.sensitive),
            known_to_ego=kind == "known",
        )
    )
    if decision.action is None:
        return None
    earliest = max(stated.day, since, tie.day if tie else 0)
    related = "stranger" if kind == "stranger" else "" if asker is None else relation(book.world, ego, asker)
    return Case(ego, fact, stated, asker, kind, earliest, decision.action, decision.rule, related, tie)


def _heard(book: Book, asker: str, fact: Fact) -> bool:
    """Whether the subject ever said the value in the asker's presence, about this fact or another one."""
    today = book.config.calendar_epoch
    return any(
        names_value(fact.value.value, f"{one.value.text}; {one.fact.item}", today)
        for one in book.said_to(asker, fact.subject)
    )
