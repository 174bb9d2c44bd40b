"""All questions of a world: drawn from its statements, each fact asked after once per ego, with a lag of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memarena.dataset.model import Family

from masim.families import details, links
from masim.families.book import Book, Draft, draw_lag
from masim.families.permission import permission
from masim.families.temporal import temporal
from masim.plan.facts import FactSource, opaque
from masim.plan.state import StatedFact
from masim.streams import Stream

Builder = Callable[[Book, str, StatedFact, Stream], Draft | None]
_SIMPLE: tuple[tuple[Family, Builder], ...] = (
    (Family.CONFLICT, links.conflict),
    (Family.ANAPHORA, links.anaphora),
    (Family.METADATA, links.metadata),
    (Family.CLOZE, details.cloze),
    (Family.QA, details.factual),
    (Family.COUNTERFACTUAL, details.counterfactual),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question ready to be written: the draft, its id and the time at which it comes up (simulated days)."""

    instance_id: str
    draft: Draft
    query_time: float
    lag: int

    def row(self, antecedents: dict[str, str]) -> dict[str, Any]:
        """The row of the instance file; ``antecedents`` gives the text of turns that a gold quotes."""
        draft = self.draft
        truth = dict(draft.truth)
        if "antecedent_turn" in truth:
            truth["antecedent_text"] = antecedents[truth["antecedent_turn"]]
        sessions = list(dict.fromkeys(one.session_id for one in draft.evidence))
        tier = "full_ego" if not sessions else "single_session" if len(sessions) == 1 else "cross_session"
        return {
            "instance_id": self.instance_id,
            "dimension": draft.family.value,
            "query": draft.query,
            "ground_truth": truth,
            "difficulty": draft.difficulty,
            "asker_agent_id": draft.asker,
            "answerer_agent_id": f"assistant_{draft.ego}",
            "ego_agent_id": draft.ego,
            "evidence_session_ids": sessions,
            "context_tier": tier,
            "metadata": {
                "query_timestamp": self.query_time,
                "evidence_turn_ids": list(dict.fromkeys(one.turn_id for one in draft.evidence)),
                "fact_id": draft.fact_id,
                "lag_days": self.lag,
                **draft.extra,
            },
        }


class Deriver:
    """Draws the questions of all families."""

    def __init__(self, book: Book, source: FactSource) -> None:
        self._book, self._source = book, source
        self._taken: set[tuple[str, str]] = set()
        self._counts: Counter[tuple[Family, str]] = Counter()
        self._drafts: list[Draft] = []

    def derive(self) -> list[Asked]:
        """All questions, in a fixed order. A family that the world cannot fill stays short; the report says so."""
        for family, builder in _SIMPLE[:2]:
            self._fill(family, builder, self._book.config.questions(family))
        self._temporal()
        for draft in permission(self._book, self._book.config.questions(Family.PERMISSION), self._taken):
            self._drafts.append(draft)
        self._witnesses()
        for family, builder in _SIMPLE[2:]:
            self._fill(family, builder, self._book.config.questions(family))
        wanted = self._book.config.questions(Family.CONFABULATION)
        self._fill(Family.CONFABULATION, details.answerable, (wanted + 1) // 2)
        self._unanswerable(wanted)
        return [self._timed(number, draft) for number, draft in enumerate(self._drafts)]

    def _statements(self, family: Family) -> tuple[Stream, list[StatedFact]]:
        stream = Stream(self._book.config.key, "ask", family.value)
        return stream, stream.shuffled(list(self._book.said))

    def _room(self, family: Family, ego: str, wanted: int) -> bool:
        """Whether an ego may have another question of a family: none has more than twice its share."""
        return self._counts[family, ego] < max(2, -(-2 * wanted // len(self._book.names)))

    def _keep(self, draft: Draft) -> None:
        self._drafts.append(draft)
        self._counts[draft.family, draft.ego] += 1
        self._taken.update((draft.ego, fact_id) for fact_id in draft.uses)

    def _fill(self, family: Family, builder: Builder, wanted: int) -> None:
        stream, statements = self._statements(family)
        found = 0
        for stated in statements:
            if found == wanted:
                return
            ego = stream.pick(stated.people)
            if (ego, stated.fact.fact_id) in self._taken or not self._room(family, ego, wanted):
                continue
            draft = builder(self._book, ego, stated, stream)
            if draft is not None:
                self._keep(draft)
                found += 1

    def _temporal(self) -> None:
        def build(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
            return temporal(book, ego, stated, stream, frozenset(fact for who, fact in self._taken if who == ego))

        self._fill(Family.TEMPORAL, build, self._book.config.questions(Family.TEMPORAL))

    def _witnesses(self) -> None:
        wanted = self._book.config.questions(Family.WITNESS)
        stream, statements = self._statements(Family.WITNESS)
        found = 0
        for stated in statements:
            if found >= wanted:
                return
            ego = stream.pick(stated.people)
            if (ego, stated.fact.fact_id) in self._taken:
                continue
            pair = details.witnesses(self._book, ego, stated, stream)
            if pair and (pair[1].ego, stated.fact.fact_id) not in self._taken:
                for draft in pair:
                    self._keep(draft)
                    draft.last_day = max(one.last_day for one in pair)
                found += 2

    def _unanswerable(self, wanted: int) -> None:
        family = Family.CONFABULATION
        stream, statements = self._statements(family)
        missing = wanted - sum(1 for draft in self._drafts if draft.family is family)
        people = sorted(self._book.names)
        for stated in statements[::-1]:
            if missing == 0:
                return
            ego = stream.pick(stated.people)
            if not details.plain_detail(self._book, ego, stated) or not self._room(family, ego, 2 * wanted):
                continue
            attribute = self._book.attribute(stated.fact)
            subject = ego if stated.fact.subject == ego else stream.pick([other for other in people if other != ego])
            fact = self._source.detail(subject, attribute, stream.pick(attribute.items))
            if (ego, fact.fact_id) in self._taken:
                continue
            draft = details.unanswerable(self._book, ego, stated, stream, fact)
            if draft is not None:
                self._keep(draft)
                missing -= 1

    def _timed(self, number: int, draft: Draft) -> Asked:
        key = self._book.config.key
        stream = Stream(key, "lag", number)
        last = max((one.day for one in draft.evidence), default=draft.last_day)
        if "asked_on" in draft.extra:
            day = int(draft.extra.pop("asked_on"))
        else:
            day = last + draw_lag(stream, last, self._book.config.days)
        time = round(day + 0.9996 + stream.below(30) / 100000, 5)
        return Asked(opaque("q", key, draft.family.value, number), draft, time, day - last)
