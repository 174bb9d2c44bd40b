"""Defines memories that rank items with a fault, as vendors' indexes do, which single facts do not show.

The faults are in order, scores, bounds, and parts of a day that are lost; they show only if several items compete. The
conformance suite must fail each (``test_broken.py``), and must pass RankedMemory, which ranks as a sound index may.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memarena_backend import Call, Day, Item, Notice, Query, SearchResult, fit_ranked
from memarena_backend.records import Role

from tests.conformance.sound import WORD, SoundMemory, items_of


@dataclass(frozen=True)
class Passage:
    """A turn or an event as an index sees it."""

    item: Item
    words: frozenset[str]


def words_of(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.lower()))


class RankedMemory(SoundMemory):
    """Sound: rare words count more, the best match comes first, and only visible days of the namespace count."""

    def passages(self, namespace: str, query: Query) -> list[Passage]:
        return [Passage(item, words_of(item.text)) for day in self.searched(namespace, query) for item in items_of(day)]

    def corpus(self, namespace: str, query: Query) -> list[frozenset[str]]:
        """What the frequency of words is computed from."""
        return [passage.words for passage in self.passages(namespace, query)]

    def matches(self, namespace: str, query: Query) -> list[Item]:
        query_words = words_of(query.text)
        corpus = self.corpus(namespace, query)
        passage_counts = Counter(word for words in corpus for word in words & query_words)
        scored = [
            replace(
                passage.item,
                score=sum(math.log(1 + len(corpus) / passage_counts[word]) for word in passage.words & query_words),
            )
            for passage in self.passages(namespace, query)
            if passage.words & query_words
        ]
        return sorted(scored, key=lambda item: -item.score)


# ------------------------------------------------------------------ order, scores and bounds


class WorstFirst(RankedMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return super().matches(namespace, query)[::-1]


class ScoresAreDistances(RankedMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [replace(item, score=1 / (1 + item.score)) for item in super().matches(namespace, query)]


class KeepsTheWorst(RankedMemory):
    """Ranks best first, but a bound on items leaves the end of the list instead of its beginning."""

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        returned = self.matches(namespace, query)
        return fit_ranked(returned[-query.max_items :] if query.max_items else returned, None, query.max_context_tokens)


class RoundsKDown(RankedMemory):
    """A search of several parts, each of which returns its share of k."""

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        bound = query.max_items if query.max_items is None or query.max_items < 2 else query.max_items // 2 * 2
        return fit_ranked(self.matches(namespace, query), bound, query.max_context_tokens)


class BudgetIsOneTooSmall(RankedMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        bound = None if query.max_context_tokens is None else max(1, query.max_context_tokens - 1)
        return fit_ranked(self.matches(namespace, query), query.max_items, bound)


# ------------------------------------------------------------------ what is lost


class Loses(RankedMemory):
    """Keeps a part of each day."""

    def keeps(self, index: int, turns: int, text: str) -> bool:
        return True

    def searched(self, namespace: str, query: Query) -> list[Day]:
        return [self._part_of(day) for day in super().searched(namespace, query)]

    def _part_of(self, day: Day) -> Day:
        sessions = tuple(
            replace(s, turns=tuple(t for n, t in enumerate(s.turns) if self.keeps(n, len(s.turns), t.text)))
            for s in day.sessions
        )
        return replace(day, sessions=sessions)


class LosesTheFirstTurn(Loses):
    def keeps(self, index: int, turns: int, text: str) -> bool:
        return turns < 8 or index > 0


class LosesTheLastTurn(Loses):
    def keeps(self, index: int, turns: int, text: str) -> bool:
        return turns < 8 or index < turns - 1


class LosesTheMiddle(Loses):
    def keeps(self, index: int, turns: int, text: str) -> bool:
        return turns < 20 or index < 8 or index >= turns - 8


class LosesShortTurns(Loses):
    def keeps(self, index: int, turns: int, text: str) -> bool:
        return len(text) >= 12


class LosesEvents(RankedMemory):
    def searched(self, namespace: str, query: Query) -> list[Day]:
        return [replace(day, events=()) for day in super().searched(namespace, query)]


class LosesPrivateEvents(RankedMemory):
    def searched(self, namespace: str, query: Query) -> list[Day]:
        return [
            replace(day, events=tuple(event for event in day.events if event.category != "private"))
            for day in super().searched(namespace, query)
        ]


class KeepsTheOwnerOnly(RankedMemory):
    def searched(self, namespace: str, query: Query) -> list[Day]:
        return [
            replace(
                day,
                sessions=tuple(
                    replace(s, turns=tuple(turn for turn in s.turns if turn.speaker.role is Role.OWNER))
                    for s in day.sessions
                ),
            )
            for day in super().searched(namespace, query)
        ]


class LosesRepetitions(RankedMemory):
    """Text that came before is treated as a duplicate."""

    def matches(self, namespace: str, query: Query) -> list[Item]:
        first: dict[str, Item] = {}
        for item in sorted(super().matches(namespace, query), key=lambda item: item.time):
            first.setdefault(item.text, item)
        return sorted(first.values(), key=lambda item: -item.score)


# ------------------------------------------------------------------ what shines through


class FrequenciesOfAllDays(RankedMemory):
    def corpus(self, namespace: str, query: Query) -> list[frozenset[str]]:
        return [words_of(item.text) for day in self.days.get(namespace, []) for item in items_of(day)]


class FrequenciesOfAllNamespaces(RankedMemory):
    def corpus(self, namespace: str, query: Query) -> list[frozenset[str]]:
        return [words_of(item.text) for days in list(self.days.values()) for day in days for item in items_of(day)]


class CutsNames(RankedMemory):
    """The key of a namespace is 64 bytes wide."""

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        return super().commit_day(namespace[:64], day, call)

    def searched(self, namespace: str, query: Query) -> list[Day]:
        return super().searched(namespace[:64], query)

    def forget(self, namespace: str) -> None:
        super().forget(namespace[:64])


class CutsTurnIds(RankedMemory):
    """Turns are kept under the first 100 bytes of their ids."""

    def searched(self, namespace: str, query: Query) -> list[Day]:
        return [
            replace(
                day,
                sessions=tuple(
                    replace(s, turns=tuple({turn.turn_id[:100]: turn for turn in s.turns}.values()))
                    for s in day.sessions
                ),
            )
            for day in super().searched(namespace, query)
        ]


class ForgetsOldNamespaces(RankedMemory):
    """Keeps the twenty namespaces that were used last."""

    def __init__(self) -> None:
        super().__init__()
        self.used: OrderedDict[str, None] = OrderedDict()

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        self.used[namespace] = None
        self.used.move_to_end(namespace)
        while len(self.used) > 20:
            self.days.pop(self.used.popitem(last=False)[0], None)
        return super().commit_day(namespace, day, call)


class SharedScratch(RankedMemory):
    """The result is in a variable that all searches share for a moment."""

    def __init__(self) -> None:
        super().__init__()
        self._result: list[Item] = []

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        self._result = self.matches(namespace, query)
        time.sleep(0.0005)
        return fit_ranked(self._result, query.max_items, query.max_context_tokens)


# ------------------------------------------------------------------ items


class TimesOfItsOwn(RankedMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [replace(item, time=item.time.replace("T", " ")[:19]) for item in super().matches(namespace, query)]


class TimesWithoutOffset(RankedMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [replace(item, time=item.time[:19]) for item in super().matches(namespace, query)]


class ValidBackwards(RankedMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [
            replace(item, valid_from="2025-01-02", valid_until="2025-01-01T23:00:00+00:00")
            for item in super().matches(namespace, query)
        ]
