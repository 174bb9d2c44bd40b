"""Enumerates the cases for permission questions (D6) whose decision is the same at any later time.

A case is an ego's fact with an asker. Rules have their numbers in ``memarena_dataset.permission_rules``, which decides
the right action of each case.
"""

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
"""Minimum share of the details that are not guarded, but used for cases of rule 8."""
PLAIN_PER_ITEM = 2
"""Such details for each wanted item, if the world has them: small worlds have little else to disclose."""

Ties = dict[tuple[str, str], dict[str, StatedFact]]
"""Statements about friendship that an ego heard: by (ego, person), then by the other person, both ways."""


@dataclass(frozen=True, slots=True)
class SharedFact:
    """A fact as an ego knows it: all its statements in the ego's sessions, and the wish that counts.

    ``turn`` says why there are several statements: "changed" if the subject stated the fact again, "overruled" if
    another person did, whose wish does not count; "" if there is one statement.
    """

    ego: str
    fact: Fact
    statements: tuple[StatedFact, ...]
    wish: Wish
    turn: str

    @property
    def about(self) -> tuple[str, str]:
        """Return the key of the fact: the ego's id and the fact's id."""
        return self.ego, self.fact.fact_id

    @property
    def form(self) -> str:
        """Return the form of the wish that counts, without the suffix of a second wish; "" for none."""
        return self.wish.form.split(".")[0]

    @property
    def earliest(self) -> int:
        """Return the day of the last statement, from which on the case does not change."""
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
    """The asker's relation to the ego, as the question states it; "" for the ego and for an anonymous asker."""
    tie: StatedFact | None = None


def told_facts(book: Book, stream: Stream, used_pairs: set[tuple[str, str]], wanted: int) -> Iterator[SharedFact]:
    """Yield the facts that can be asked about, in random order, without the (ego, fact id) pairs ``used_pairs``.

    ``wanted`` is the number of questions to be made: it raises the share of facts that are not guarded.
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
    """Return a fact as an ego knows it from its subject; None if no permission question can be asked about it."""
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
    subject_statements = [stated for stated in statements if stated.speaker == fact.subject]
    days = [stated.day for stated in subject_statements]
    if len(set(days)) != len(days):
        return None
    turn = (
        "overruled" if len(subject_statements) < len(statements) else "changed" if len(subject_statements) > 1 else ""
    )
    return SharedFact(ego, fact, statements, subject_statements[-1].wish, turn)


class Cases:
    """Builds the decided cases of a fact: one for each person who could ask an ego about it."""

    def __init__(self, book: Book, stream: Stream) -> None:
        self._book, self._stream = book, stream
        self._people = sorted(book.names)
        self._outsiders = strangers(book.config, book.world)
        self._ties = _ties(book)
        self._last_date = book.config.days - 1

    def by_acquaintances(self, shared: SharedFact) -> list[Case]:
        """Return the cases of people whom the ego knows, except for those who heard any statement of the fact."""
        heard = {person for stated in self._book.said_of(shared.fact.fact_id) for person in stated.people}
        askers = [
            person for person in self._people if person not in heard and person not in (shared.ego, shared.fact.subject)
        ]
        return [case for asker in askers if (case := self._known(shared, asker)) is not None]

    def by_strangers(self, shared: SharedFact) -> list[Case]:
        """Return the cases of an anonymous asker and of a stranger, whose name no person of the world knows."""
        start = sum(map(ord, shared.ego)) % len(self._outsiders)
        askers: list[str | None] = [None, self._outsiders[start]]
        cases = (self._case(shared, asker, "anonymous" if asker is None else "stranger", 0, None) for asker in askers)
        return [case for case in cases if case is not None]

    def _known(self, shared: SharedFact, asker: str) -> Case | None:
        """Return the case of an asker whom the ego knows.

        None if they never met, the asker heard the fact, or the wish names a circle that the question does not show.
        """
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
        """Whether the wish names a circle of the asker's that differs from their relation in the question."""
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
        """Return a case with the action that the rules decide, and its earliest day; None if they decide none."""
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
    """Return a case of rule 1: the ego asks for what they heard, or the subject for what they told."""
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
    """Return the cases to disclose, and those to withhold."""
    return [case for case in cases if case.action == "disclose"], [case for case in cases if case.action == "withhold"]
