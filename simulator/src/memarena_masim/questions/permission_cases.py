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
"""What an ego heard of a person's friends: under (ego, one), by the other; both ways."""


@dataclass(frozen=True, slots=True)
class SharedFact:
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

    told: SharedFact
    asker: str | None
    kind: AskerKind
    earliest: int
    action: Action
    rule: int
    relation: str
    """What the asker is to the ego, as the question says it; "" for the ego and for no person in particular."""
    tie: StatedFact | None = None


def told_facts(book: Book, stream: Stream, used_pairs: set[tuple[str, str]], wanted: int) -> Iterator[SharedFact]:
    """Facts that can be asked about, in random order. Those in ``taken`` are left out, with their ego.

    ``wanted`` items are to be made of them.
    """
    plain = sum(stated.fact.kind is FactKind.DETAIL and not stated.fact.guarded for stated in book.said)
    share = max(PLAIN_SHARE, PLAIN_PER_ITEM * wanted / max(plain, 1))
    seen: set[tuple[str, str]] = set()
    for stated in stream.shuffled(list(book.said)):
        for ego in stated.people:
            about = (ego, stated.fact.fact_id)
            if about in seen or about in used_pairs:
                continue
            seen.add(about)
            shared = _shared(book, ego, stated.fact)
            if shared is not None and (shared.fact.guarded or stream.chance(share)):
                yield shared


def _shared(book: Book, ego: str, fact: Fact) -> SharedFact | None:
    statements = tuple(book.statements(ego, fact.fact_id))
    first = statements[0]
    if fact.kind is not FactKind.DETAIL or ego == fact.subject or any(stated.speaker == ego for stated in statements):
        return None
    if first.role is not Role.TELL or first.speaker != fact.subject:
        return None
    if book.catalogue.everyday(fact.value.value) or fact.fact_id in book.outdated:
        return None
    if not fact.guarded and len(statements) != 1:
        return None
    own = [stated for stated in statements if stated.speaker == fact.subject]
    days = [stated.day for stated in own]
    if len(set(days)) != len(days):
        return None
    turn = "overruled" if len(own) < len(statements) else "changed" if len(own) > 1 else ""
    return SharedFact(ego, fact, statements, own[-1].wish, turn)


class Cases:
    """Decides who may be told what an ego heard."""

    def __init__(self, book: Book, stream: Stream) -> None:
        self._book, self._stream = book, stream
        self._people = sorted(book.names)
        self._outsiders = strangers(book.config, book.world)
        self._ties = _ties(book)
        self._last_date = book.config.days - 1

    def by_acquaintances(self, shared: SharedFact) -> list[Case]:
        """Cases of everybody whom the ego knows, but those who were there when it was told."""
        heard = {person for stated in self._book.said_of(shared.fact.fact_id) for person in stated.people}
        askers = [
            person for person in self._people if person not in heard and person not in (shared.ego, shared.fact.subject)
        ]
        return [case for asker in askers if (case := self._known(shared, asker)) is not None]

    def by_strangers(self, shared: SharedFact) -> list[Case]:
        """Cases of a person who does not say who they are, and of a person whom no person knows by their name."""
        start = sum(map(ord, shared.ego)) % len(self._outsiders)
        askers: list[str | None] = [None, self._outsiders[start]]
        cases = (self._case(shared, asker, "anonymous" if asker is None else "stranger", 0, None) for asker in askers)
        return [case for case in cases if case is not None]

    def _known(self, shared: SharedFact, asker: str) -> Case | None:
        book, ego = self._book, shared.ego
        since = 0
        if book.world.edge(ego, asker).layer < 0:
            met = book.met[ego].get(asker)
            if met is None:
                return None
            since = met
        if self._both_circles(shared.wish, ego, asker):
            return None
        tie = self._ties.get((ego, shared.fact.subject), {}).get(asker) if shared.wish.level == "friends_only" else None
        heard = (f"{stated.value.text}; {stated.fact.item}" for stated in book.said_to(asker, shared.fact.subject))
        if any(names_value(shared.fact.value.value, text, book.config.calendar_epoch) for text in heard):
            return None
        return self._case(shared, asker, "known", since, tie)

    def _both_circles(self, wish: Wish, ego: str, asker: str) -> bool:
        """Whether a circle is named that the asker belongs to, though the question calls them something else."""
        named = {*wish.may_know, *wish.may_not_know}
        return any(
            group.kind in kinds and ego in group.members and asker in group.members
            for circle, kinds in (("family", ("family",)), ("colleague", ("team",)))
            if circle in named and relation(self._book.world, ego, asker) != circle
            for group in self._book.world.groups
        )

    def _case(
        self, shared: SharedFact, asker: str | None, kind: AskerKind, since: int, tie: StatedFact | None
    ) -> Case | None:
        book, wish = self._book, shared.wish
        related = "stranger" if kind == "stranger" else "" if asker is None else relation(book.world, shared.ego, asker)
        start = 0 if wish.not_before is None else (wish.not_before - book.config.calendar_epoch).days
        decision = decide(
            AccessCase(
                asker=asker,
                ego=shared.ego,
                subject=shared.fact.subject,
                heard_from_subject=False,
                level=wish.level,
                friends=tie.value.text == "friends" if tie else None,
                sensitive=bool(shared.fact.sensitive),
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
        earliest = max(shared.earliest, since, begun, tie.day if tie else 0)
        return Case(shared, asker, kind, earliest, decision.action, decision.rule, related, tie)


def self_case(book: Book, stream: Stream, shared: SharedFact) -> Case:
    """A case of rule 1: the owner asks for what they heard, or the subject for what they told."""
    asker = shared.ego if stream.chance(0.5) else shared.fact.subject
    related = "" if asker == shared.ego else relation(book.world, shared.ego, asker)
    return Case(shared, asker, "self", shared.earliest, "disclose", 1, related)


def _ties(book: Book) -> Ties:
    ties: Ties = {}
    for stated in book.said:
        if stated.fact.kind is FactKind.TIE:
            subject, other = stated.fact.subject, stated.fact.item
            for ego in stated.people:
                if ego not in (subject, other):
                    ties.setdefault((ego, subject), {}).setdefault(other, stated)
                    ties.setdefault((ego, other), {}).setdefault(subject, stated)
    return ties


def halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Those that may be told, and those that may not."""
    return [case for case in cases if case.action == "disclose"], [case for case in cases if case.action == "withhold"]
