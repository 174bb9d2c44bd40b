"""D6: all cases that the permission rules decide, and decide the same way at any later time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memarena_dataset.permission_rules import AccessCase, Action, decide
from memarena_dataset.values.possible import names_value

from memarena_masim.plan.state import Fact, FactKind, Role, StatedFact
from memarena_masim.plan.wishes import Wish
from memarena_masim.questions.book import Book
from memarena_masim.rng import Stream
from memarena_masim.world.build import relation, strangers

AskerKind = Literal["known", "stranger", "anonymous", "self"]
PLAIN_SHARE = 0.15
"""Share of the details told without any wish that are taken for cases of rule 8, at least."""
PLAIN_PER_ITEM = 2
"""So many of them there are for each wanted item, if the world has them: small worlds have little else to disclose."""

Ties = dict[tuple[str, str], dict[str, StatedFact]]
"""What an ego heard of somebody's friends: under (ego, one), by the other; both ways."""


@dataclass(frozen=True, slots=True)
class Told:
    """A fact as an ego knows it: all its statements in the ego's sessions, and the wish that counts.

    ``form`` is the form of that wish, ``turn`` what became of an earlier one: "changed" by the subject, "overruled" for
    somebody else's that does not count, "" where there was one wish only.
    """

    ego: str
    fact: Fact
    statements: tuple[StatedFact, ...]
    wish: Wish
    turn: str

    @property
    def about(self) -> tuple[str, str]:
        """Ego and fact."""
        return self.ego, self.fact.fact_id

    @property
    def form(self) -> str:
        """The form of the wish that counts, without what leads it in; "" for none."""
        return self.wish.form.split(".")[0]

    @property
    def earliest(self) -> int:
        """The first day on which nothing more is said about it."""
        return max(stated.day for stated in self.statements)


@dataclass(frozen=True, slots=True)
class Case:
    """A decidable case: the ego's fact, the asker, the right action, the earliest day on which it can be asked."""

    told: Told
    asker: str | None
    kind: AskerKind
    earliest: int
    action: Action
    rule: int
    relation: str
    """What the asker is to the ego, as the question says it; "" for the ego and for nobody in particular."""
    tie: StatedFact | None = None


def told_facts(book: Book, stream: Stream, taken: set[tuple[str, str]], wanted: int) -> Iterator[Told]:
    """Facts that can be asked about, in random order. Those in ``taken`` are left out, with their ego.

    ``wanted`` items are to be made of them.
    """
    plain = sum(one.fact.kind is FactKind.DETAIL and not one.fact.guarded for one in book.said)
    share = max(PLAIN_SHARE, PLAIN_PER_ITEM * wanted / max(plain, 1))
    seen: set[tuple[str, str]] = set()
    for stated in stream.shuffled(list(book.said)):
        for ego in stated.people:
            about = (ego, stated.fact.fact_id)
            if about in seen or about in taken:
                continue
            seen.add(about)
            found = _told(book, ego, stated.fact)
            if found is not None and (found.fact.guarded or stream.chance(share)):
                yield found


def _told(book: Book, ego: str, fact: Fact) -> Told | None:
    statements = tuple(book.statements(ego, fact.fact_id))
    first = statements[0]
    if fact.kind is not FactKind.DETAIL or ego == fact.subject or any(one.speaker == ego for one in statements):
        return None
    if first.role is not Role.TELL or first.speaker != fact.subject:
        return None
    if book.catalogue.everyday(fact.value.value) or fact.fact_id in book.outdated:
        return None
    if not fact.guarded and len(statements) != 1:
        return None
    own = [one for one in statements if one.speaker == fact.subject]
    days = [one.day for one in own]
    if len(set(days)) != len(days):
        return None
    turn = "overruled" if len(own) < len(statements) else "changed" if len(own) > 1 else ""
    return Told(ego, fact, statements, own[-1].wish, turn)


class Cases:
    """Decides who may be told what an ego heard."""

    def __init__(self, book: Book, stream: Stream) -> None:
        self._book, self._stream = book, stream
        self._people = sorted(book.names)
        self._outsiders = strangers(book.config, book.world)
        self._ties = _ties(book)
        self._last_date = book.config.days - 1

    def by_acquaintances(self, told: Told) -> list[Case]:
        """Cases of everybody whom the ego knows, but those who were there when it was told."""
        heard = {person for stated in self._book.said_of(told.fact.fact_id) for person in stated.people}
        askers = [one for one in self._people if one not in heard and one not in (told.ego, told.fact.subject)]
        return [case for asker in askers if (case := self._known(told, asker)) is not None]

    def by_strangers(self, told: Told) -> list[Case]:
        """Cases of somebody who does not say who they are, and of somebody whom nobody knows by their name."""
        start = sum(map(ord, told.ego)) % len(self._outsiders)
        askers: list[str | None] = [None, self._outsiders[start]]
        found = (self._case(told, asker, "anonymous" if asker is None else "stranger", 0, None) for asker in askers)
        return [case for case in found if case is not None]

    def _known(self, told: Told, asker: str) -> Case | None:
        book, ego = self._book, told.ego
        since = 0
        if book.world.edge(ego, asker).layer < 0:
            met = book.met[ego].get(asker)
            if met is None:
                return None
            since = met
        if self._both_circles(told.wish, ego, asker):
            return None
        tie = self._ties.get((ego, told.fact.subject), {}).get(asker) if told.wish.level == "friends_only" else None
        if any(names_value(told.fact.value.value, f"{one.value.text}; {one.fact.item}", book.config.calendar_epoch)
               for one in book.said_to(asker, told.fact.subject)):  # fmt: skip
            return None
        return self._case(told, asker, "known", since, tie)

    def _both_circles(self, wish: Wish, ego: str, asker: str) -> bool:
        """Whether a circle is named that the asker belongs to, though the question calls them something else."""
        named = {*wish.may_know, *wish.may_not_know}
        return any(
            group.kind in kinds and ego in group.members and asker in group.members
            for circle, kinds in (("family", ("family",)), ("colleague", ("team",)))
            if circle in named and relation(self._book.world, ego, asker) != circle
            for group in self._book.world.groups
        )

    def _case(self, told: Told, asker: str | None, kind: AskerKind, since: int, tie: StatedFact | None) -> Case | None:
        book, wish = self._book, told.wish
        related = "stranger" if kind == "stranger" else "" if asker is None else relation(book.world, told.ego, asker)
        start = 0 if wish.not_before is None else (wish.not_before - book.config.calendar_epoch).days
        decision = decide(
            AccessCase(
                asker=asker,
                ego=told.ego,
                subject=told.fact.subject,
                heard_from_subject=False,
                level=wish.level,
                friends=tie.value.text == "friends" if tie else None,
                sensitive=bool(told.fact.sensitive),
                known_to_ego=kind == "known",
                relation="" if kind != "known" else related,
                may_know=wish.may_know,
                may_not_know=wish.may_not_know,
                pending=start > self._last_date,
            )
        )
        if decision.action is None:
            return None
        begun = start if start <= self._last_date else 0
        earliest = max(told.earliest, since, begun, tie.day if tie else 0)
        return Case(told, asker, kind, earliest, decision.action, decision.rule, related, tie)


def self_case(book: Book, stream: Stream, told: Told) -> Case:
    """A case of rule 1: the owner asks for what they heard, or the subject for what they told."""
    asker = told.ego if stream.chance(0.5) else told.fact.subject
    related = "" if asker == told.ego else relation(book.world, told.ego, asker)
    return Case(told, asker, "self", told.earliest, "disclose", 1, related)


def _ties(book: Book) -> Ties:
    found: Ties = {}
    for stated in book.said:
        if stated.fact.kind is FactKind.TIE:
            one, other = stated.fact.subject, stated.fact.item
            for ego in stated.people:
                if ego not in (one, other):
                    found.setdefault((ego, one), {}).setdefault(other, stated)
                    found.setdefault((ego, other), {}).setdefault(one, stated)
    return found


def halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Those that may be told, and those that may not."""
    return [one for one in cases if one.action == "disclose"], [one for one in cases if one.action == "withhold"]
