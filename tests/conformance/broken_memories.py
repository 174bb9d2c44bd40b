"""Defines broken memories that return wrong items, or not the right ones.

Their defects show in a search for single facts. A class without a docstring does what its name says; its row in
defects.toml (by the name in broken.py) says it in a sentence.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from memarena_backend import Call, Day, Item, Notice, Query, SearchResult, fit_ranked
from memarena_backend.errors import invalid_argument

from tests.conformance.sound import SoundMemory

STUCK_S = 20.0
"""Longer than the suite waits, and short enough that a server with a stuck call can be stopped."""


class Leaks(SoundMemory):
    def searched(self, namespace: str, query: Query) -> list[Day]:
        return [day for days in list(self.days.values()) for day in days if day.index <= query.as_of_day]


class FoldsNames(SoundMemory):
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        return super().commit_day(namespace.lower(), day, call)

    def searched(self, namespace: str, query: Query) -> list[Day]:
        return super().searched(namespace.lower(), query)

    def forget(self, namespace: str) -> None:
        super().forget(namespace.lower())


class NormalisesText(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        items = super().matches(namespace, query)
        return [replace(item, text=unicodedata.normalize("NFC", item.text).strip()) for item in items]


class DropsEmoji(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        items = super().matches(namespace, query)
        return [replace(item, text="".join(c for c in item.text if ord(c) < 0x10000)) for item in items]


class CatchesUp(SoundMemory):
    """Completes a day after the next question, which sees it incomplete: not by a clock, so that load hides nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[Callable[[], object]] = []
        """What is still to be done, in order."""

    def matches(self, namespace: str, query: Query) -> list[Item]:
        items = super().matches(namespace, query)
        while self.left:
            self.left.pop(0)()
        return items

    def complete(self, namespace: str, day: Day) -> None:
        """Replace the stored part of a day by the whole day."""
        days = self.days.get(namespace, [])
        days[:] = [day if each.index == day.index else each for each in days]


class NotReadyOnReturn(CatchesUp):
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        self.left.append(partial(super().commit_day, namespace, day, call))
        return ()


class LastSessionLater(CatchesUp):
    """Indexes the last of several sessions after the next question."""

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        if len(day.sessions) < 2:
            return super().commit_day(namespace, day, call)
        self.left.append(partial(self.complete, namespace, day))
        return super().commit_day(namespace, replace(day, sessions=day.sessions[:-1]), call)


class EmptySearch(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return []


class TimeTravelSeesAll(SoundMemory):
    def searched(self, namespace: str, query: Query) -> list[Day]:
        return list(self.days.get(namespace, ()))


class MutableSearch(SoundMemory):
    searches = 0

    def matches(self, namespace: str, query: Query) -> list[Item]:
        items = super().matches(namespace, query)
        self.searches += 1
        cut = self.searches % len(items) if items else 0
        return items[cut:] + items[:cut]


class IgnoresMaxItems(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        return fit_ranked(self.matches(namespace, query), None, query.max_context_tokens)


class IgnoresBudget(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        return fit_ranked(self.matches(namespace, query), query.max_items, None)


class NoSources(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [replace(item, session_ids=(), turn_ids=()) for item in super().matches(namespace, query)]


class CountsLetters(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        items: list[Item] = []
        for item in self.matches(namespace, query)[: query.max_items]:
            if (
                query.max_context_tokens
                and sum(len(each.text) for each in (*items, item)) > 4 * query.max_context_tokens
            ):
                break
            items.append(item)
        return SearchResult(items)


class RoundsTokensDown(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        items: list[Item] = []
        for item in self.matches(namespace, query)[: query.max_items or None]:
            token_count = sum(len(each.text.encode()) // 4 for each in (*items, item))
            if query.max_context_tokens and token_count > query.max_context_tokens:
                break
            items.append(item)
        return SearchResult(items)


class NamesNeighbours(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        before = {
            turn.turn_id: session.turns[index - 1].turn_id
            for day in self.searched(namespace, query)
            for session in day.sessions
            for index, turn in enumerate(session.turns)
        }
        returned = super().matches(namespace, query)
        return [replace(item, turn_ids=tuple(before[turn] for turn in item.turn_ids)) for item in returned]


class HangsOnStrangers(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        give_up_at = time.monotonic() + STUCK_S
        while query.requester.kind.value == "anonymous" and call.is_active() and time.monotonic() < give_up_at:
            time.sleep(0.02)
        return super().search(namespace, query, call)


class UsesEvidence(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        items = super().matches(namespace, replace(query, text=f"{query.text} canoe"))
        if query.evidence is None:
            return super().matches(namespace, query)
        return [item for item in items if set(item.session_ids) & set(query.evidence.session_ids)]


class RefusesEmptyDays(SoundMemory):
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        if not day.sessions and not day.events:
            raise invalid_argument("session", "a day without sessions makes no sense")
        return super().commit_day(namespace, day, call)
