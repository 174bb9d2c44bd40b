"""Derives all questions of a world: each fact is asked about once per ego, at its own lag after its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from memarena_dataset.model import Family

from memarena_masim.plan.facts import FactSource, opaque
from memarena_masim.plan.popularity import AIMS, interference_class
from memarena_masim.plan.state import StatedFact
from memarena_masim.questions import abstention, details, links
from memarena_masim.questions.book import Book, Draft
from memarena_masim.questions.cloze import ClozeQuestions
from memarena_masim.questions.lags import LagDrawer
from memarena_masim.questions.metadata import ATTRIBUTES, FEW_SHARE, FEW_VALUES, attribute_of, metadata
from memarena_masim.questions.permission import permission
from memarena_masim.questions.sufficient import sufficient_turns
from memarena_masim.questions.temporal import KINDS, temporal
from memarena_masim.rng import Stream

Builder = Callable[[str, StatedFact, Stream], Draft | None]
CHANGED_SHARE = 0.25
"""Share of the factual questions that ask for the current or the earlier value of a detail that changed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question ready to be written. ``query_time`` is in simulated days, ``lag`` in days after its last evidence."""

    instance_id: str
    draft: Draft
    query_time: float
    lag: int

    def row(self, antecedents: dict[str, str]) -> dict[str, Any]:
        """Return the row of the instance file; ``antecedents`` has texts of turns that golds quote, by turn id."""
        draft = self.draft
        truth = dict(draft.truth)
        if "antecedent_turn" in truth:
            truth["antecedent_text"] = antecedents[truth["antecedent_turn"]]
        sessions = list(dict.fromkeys(stated.session_id for stated in draft.evidence))
        sufficient = sufficient_turns(draft)
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
                "evidence_turn_ids": list(dict.fromkeys(stated.turn_id for stated in draft.evidence)),
                **({"sufficient_turn_ids": sufficient} if sufficient else {}),
                "fact_id": draft.fact_id,
                "lag_days": self.lag,
                **draft.extra,
            },
        }


def spread_of_interference(asked: Iterable[Asked]) -> dict[str, dict[str, int]]:
    """Count the questions by family and by class of near-duplicates that their ego hears (AIMS)."""
    by_family: dict[str, Counter[int]] = {}
    for question in asked:
        if "interference" in question.draft.extra:
            by_family.setdefault(question.draft.family.value, Counter())[
                interference_class(question.draft.extra["interference"])
            ] += 1
    return {family: {str(aim): counts[aim] for aim in AIMS} for family, counts in sorted(by_family.items())}


@dataclass(slots=True)
class _Candidates:
    """Candidates for questions, (ego, statement), in classes from which questions are drawn evenly."""

    queues: dict[Hashable, list[tuple[str, StatedFact]]] = field(default_factory=dict)
    kept: Counter[Hashable] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[tuple[Hashable, str, StatedFact]]:
        """Yield (class, ego, statement), each from the class with the fewest questions so far, until none is left."""
        while self.queues:
            least = min(self.queues, key=lambda key: (self.kept[key], str(key)))
            queue = self.queues[least]
            if not queue:
                del self.queues[least]
                continue
            ego, stated = queue.pop()
            yield least, ego, stated


class Deriver:
    """Draws the questions of all families."""

    def __init__(self, book: Book, source: FactSource) -> None:
        self._book, self._source = book, source
        self._taken: set[tuple[str, str]] = set()
        self._counts: Counter[tuple[Family, str]] = Counter()
        self._drafts: list[Draft] = []
        self._lags = LagDrawer(book.config.days)

    def derive(self) -> list[Asked]:
        """Return all questions, in a fixed order. A family that the world cannot fill stays short, as reported."""
        book = self._book
        wanted = book.config.questions
        # The order matters: a fact is asked about once per ego, by the first family that can use it.
        self._fill(Family.CONFLICT, lambda *args: links.conflict(book, *args), wanted(Family.CONFLICT))
        self._fill(Family.ANAPHORA, lambda *args: links.anaphora(book, *args), wanted(Family.ANAPHORA))
        self._temporal(wanted(Family.TEMPORAL))
        for draft in permission(book, wanted(Family.PERMISSION), self._taken):
            self._drafts.append(draft)
        self._fill(Family.CLOZE, ClozeQuestions(book, self._lags).build, wanted(Family.CLOZE))
        self._pairs(Family.WITNESS, wanted(Family.WITNESS) // 2)
        self._pairs(Family.CONFABULATION, wanted(Family.CONFABULATION) // 2)
        if wanted(Family.CONFABULATION) % 2:
            self._fill(Family.CONFABULATION, lambda *args: abstention.answerable(book, *args), 1)
        self._metadata(wanted(Family.METADATA))
        changed = self._fill(
            Family.QA, lambda *args: details.changed(book, *args), round(wanted(Family.QA) * CHANGED_SHARE)
        )
        self._fill(Family.QA, lambda *args: details.factual(book, *args), wanted(Family.QA) - changed)
        self._fill(
            Family.COUNTERFACTUAL, lambda *args: details.counterfactual(book, *args), wanted(Family.COUNTERFACTUAL)
        )
        return self._timed()

    # ------------------------------------------------------------------ filling

    def _room(self, family: Family, ego: str, wanted: int) -> bool:
        """Whether an ego may have another question of a family: at most twice its share, but at least two."""
        return self._counts[family, ego] < max(2, -(-2 * wanted // len(self._book.names)))

    def _keep(self, draft: Draft) -> None:
        self._drafts.append(draft)
        self._counts[draft.family, draft.ego] += 1
        self._taken.update((draft.ego, fact_id) for fact_id in draft.uses)

    def _candidates(self, stream: Stream, all_present: bool = False) -> _Candidates:
        """Return the statements by class of near-duplicates that the ego heard, so that the classes can be balanced.

        Each with one of those present as its ego, or with each of them in turn (``all_present``).
        """
        candidates = _Candidates()
        for stated in stream.shuffled(list(self._book.said)):
            for ego in stream.shuffled(stated.people) if all_present else [stream.pick(stated.people)]:
                key = interference_class(self._book.interference(ego, stated.fact))
                candidates.queues.setdefault(key, []).append((ego, stated))
        return candidates

    def _fill(self, family: Family, builder: Builder, wanted: int) -> int:
        """Ask up to ``wanted`` questions. Returns how many were asked.

        A second round lifts the bound per ego and tries all who were present: the speaker of a version cannot be asked.
        """
        count = 0
        for bounded in (True, False):
            stream = Stream(self._book.config.key, "ask", family.value, len(self._drafts), int(bounded))
            candidates = self._candidates(stream, all_present=not bounded)
            for key, ego, stated in candidates if count < wanted else ():
                if (ego, stated.fact.fact_id) in self._taken or (bounded and not self._room(family, ego, wanted)):
                    continue
                draft = builder(ego, stated, stream)
                if draft is None or any((ego, fact) in self._taken for fact in draft.uses):
                    continue
                self._keep(draft)
                candidates.kept[key] += 1
                count += 1
                if count == wanted:
                    break
        return count

    def _in_turn(self, family: Family, kinds: tuple[str, ...], build: Callable[[str], Builder], wanted: int) -> int:
        """Ask questions of ``kinds`` in turn, until each has no candidate left. Returns how many were asked."""
        left, open_kinds = wanted, list(kinds)
        shares = Counter(kind for kind, _ in zip(cycle(kinds), range(wanted), strict=False))
        while left > 0 and open_kinds:
            for kind in list(open_kinds):
                share = min(left, shares[kind] or -(-left // len(open_kinds)))
                made = self._fill(family, build(kind), share)
                left -= made
                if made < share:
                    open_kinds.remove(kind)
                shares[kind] = 0
                if left == 0:
                    break
        return wanted - left

    def _temporal(self, wanted: int) -> None:
        def build(kind: str) -> Builder:
            def draft_of(ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
                used = frozenset(fact for other_ego, fact in self._taken if other_ego == ego)
                return temporal(self._book, ego, stated, stream, used, kind)

            return draft_of

        self._in_turn(Family.TEMPORAL, KINDS, build, wanted)

    def _metadata(self, wanted: int) -> None:
        """Add D2 questions: first a small share for attributes with few values, then all attributes in turn."""

        def build(attribute: str) -> Builder:
            def draft_of(ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
                fits = attribute in attribute_of(stated)
                return metadata(self._book, ego, stated, stream, attribute) if fits else None

            return draft_of

        stream = Stream(self._book.config.key, "metadata", "few values")
        few = {kind: int(wanted * FEW_SHARE + stream.unit()) for kind in FEW_VALUES}
        many = tuple(attribute for attribute in ATTRIBUTES if attribute not in few)
        made = self._in_turn(Family.METADATA, many, build, wanted - sum(few.values()))
        for kind, share in few.items():
            made += self._fill(Family.METADATA, build(kind), share)
        self._in_turn(Family.METADATA, ATTRIBUTES, build, wanted - made)

    def _pairs(self, family: Family, wanted: int) -> None:
        """Ask up to ``wanted`` pairs of questions of the same form, the first with and the second without an answer."""
        stream = Stream(self._book.config.key, "pairs", family.value)
        candidates = self._candidates(stream)
        pair_count, paired = 0, set[str]()
        for key, ego, stated in candidates if wanted else ():
            fact_id = stated.fact.fact_id
            if (ego, fact_id) in self._taken or fact_id in paired or not self._room(family, ego, 2 * wanted):
                continue
            pair = self._pair(family, ego, stated, stream, wanted)
            if pair is None or any((draft.ego, fact) in self._taken for draft in pair for fact in draft.uses):
                continue
            for draft in pair:
                self._keep(draft)
            candidates.kept[key] += 1
            paired.add(fact_id)
            pair_count += 1
            if pair_count == wanted:
                return

    def _pair(
        self, family: Family, ego: str, stated: StatedFact, stream: Stream, wanted: int
    ) -> tuple[Draft, Draft] | None:
        if family is Family.WITNESS:
            return abstention.witnesses(self._book, ego, stated, stream)
        book = self._book
        open_egos = [ego for ego in sorted(book.names) if book.speaks(ego) and self._room(family, ego, 2 * wanted)]
        return abstention.abstention_pair(self._book, self._source, ego, stated, stream, stream.shuffled(open_egos)[:6])

    # ------------------------------------------------------------------ times

    def _timed(self) -> list[Asked]:
        """Return the questions with their days; a witness pair, and all on one permission fact, share a day."""
        key = self._book.config.key
        witness_days: dict[str, int] = {}
        permission_days: dict[tuple[str, str], int] = {}
        latest: dict[tuple[str, str], int] = {}
        for draft in self._drafts:
            if draft.family is Family.PERMISSION:
                about, own = (draft.ego, draft.fact_id), max(draft.last_day, *(stated.day for stated in draft.evidence))
                latest[about] = max(latest.get(about, 0), own)
        asked = []
        for number, draft in enumerate(self._drafts):
            stream = Stream(key, "lag", number)
            last = max((stated.day for stated in draft.evidence), default=draft.last_day)
            about = (draft.ego, draft.fact_id)
            day = witness_days.get(draft.fact_id) if draft.no_evidence else draft.day
            if draft.family is Family.PERMISSION:
                day = permission_days.get(about)
            if day is None:
                earliest = max(last, draft.last_day, latest.get(about, 0) if draft.family is Family.PERMISSION else 0)
                day = self._lags.day(stream, draft.family, last, earliest)
            if draft.family is Family.PERMISSION:
                permission_days[about] = day  # who may know and who may not ask at the same time
            if draft.family is Family.WITNESS:
                witness_days[draft.fact_id] = day  # the two of a pair are asked at the same time
            # in the last minute of the day: all that was stated on it is known
            time = round(day + 0.9996 + stream.below(30) / 100000, 5)
            asked.append(Asked(opaque("q", key, draft.family.value, number), draft, time, day - last))
        return asked
