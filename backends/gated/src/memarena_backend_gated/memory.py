"""Implements the backend gated: wraps a memory, and withholds from its results what the asker may not know."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version

from memarena_backend import (
    AskerKind,
    Call,
    Capability,
    Day,
    Description,
    Item,
    Memory,
    Notice,
    OptionSpec,
    Query,
    SearchResult,
)

from memarena_backend_gated.decision import Decision, Default, decide
from memarena_backend_gated.extraction import add_again, read_session
from memarena_backend_gated.model_extraction import ModelExtractor, ModelWork
from memarena_backend_gated.namespace import Namespace
from memarena_backend_gated.records import Record
from memarena_backend_gated.settings import Settings
from memarena_backend_gated.store import RecordStore

_log = logging.getLogger(__name__)

UNCLEAR = "unclear"
_KEPT = frozenset(
    {
        Capability.ANSWER,
        Capability.PROVENANCE,
        Capability.FORGET,
        Capability.STATEFUL_SEARCH,
        Capability.OWN_MODEL,
        Capability.CELL_MODEL_ACCESS,
    }
)
"""Capabilities that the gate has if the memory beneath has them. TIME_TRAVEL is not among them."""


class GatedMemory(Memory):
    """Keeps records of who may know what, next to another memory (``beneath``), and filters its search results."""

    def __init__(self, beneath: Memory, store: RecordStore, settings: Settings) -> None:
        self._beneath = beneath
        self._store = store
        self._settings = settings
        self._namespaces: dict[str, Namespace] = {}
        self._extractor = ModelExtractor() if settings.extraction == "model" else None

    def describe(self) -> Description:
        below = self._beneath.describe()
        unclear = OptionSpec(
            UNCLEAR, "What holds where a wish is unclear: careful (withheld) or open (shown).", self._settings.default
        )
        by_model = "" if self._extractor is None else ", wishes read by a model"
        return Description(
            name="gated",
            version=f"{version('memarena-backend-gated')} over {below.name} {below.version}{by_model}",
            kind=below.kind,
            capabilities=below.capabilities & (_KEPT if self._extractor is None else _KEPT - {Capability.FORGET}),
            options=tuple(sorted((*below.options, unclear), key=lambda option: option.key)),
            prompt_style=below.prompt_style,
            limits=below.limits,
            retention=below.retention,
            token_counting=below.token_counting,
            kept_facts=below.kept_facts,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        notices = self._beneath.commit_day(namespace, day, call)
        started_ns = time.perf_counter_ns()
        state = self._namespaces.setdefault(namespace, Namespace())
        work = ModelWork()
        added = self._ingest(state, day, call, work)
        self._store.put(namespace, day.index, added, state.people)
        elapsed_us = (time.perf_counter_ns() - started_ns) // 1000
        reading_notices = [Notice("gate_records", f"read in {elapsed_us} us", len(added))] if added else []
        return (*notices, *reading_notices, *work.notices())

    def _ingest(self, known: Namespace, day: Day, call: Call, work: ModelWork) -> list[Record]:
        known.add_people(day)
        added = []
        for session in day.sessions:
            wishes = {} if self._extractor is None else self._extractor.read(session, call, work)
            added += read_session(known, known.add_session(session), day.index, wishes)
        return added

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        all_days = tuple(days)
        self._beneath.restore(namespace, all_days, call)
        state = self._namespaces[namespace] = Namespace()
        # Records that a model read come from the store, as no model may be called now; rules read the days again.
        by_day = {} if self._extractor is None else self._store.records(namespace)
        self._store.remove(namespace)
        for day in all_days:
            state.add_people(day)
            records = by_day.get(day.index)
            if records is None and self._extractor is not None:
                _log.warning("day %d: what the model read of it is gone; read by rules", day.index)
            for session in day.sessions:
                turns = state.add_session(session)
                if records is None:
                    read_session(state, turns, day.index)
                else:
                    add_again(state, turns, records)
            added = [record for record in state.records if record.day_index == day.index]
            self._store.put(namespace, day.index, added, state.people)

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        default: Default = "open" if query.choice_option(UNCLEAR, ("careful", "open")) == "open" else "careful"
        result = self._beneath.search(namespace, query, call)
        if query.requester.kind is AskerKind.OWNER:
            return result
        started_ns = time.perf_counter_ns()
        state = self._namespaces[namespace]
        decisions = [decide(state, item, query, default) for item in result.items]
        shown = [item for item, decision in zip(result.items, decisions, strict=True) if decision.shown]
        elapsed_us = (time.perf_counter_ns() - started_ns) // 1000
        notices = (*result.notices, *_notices(decisions), Notice("gate_us", "", max(1, elapsed_us)))
        return SearchResult(shown, notices, truncated=result.truncated)

    def shown(self, namespace: str, items: Iterable[Item], query: Query, default: Default) -> list[Item]:
        """Return the items that the asker of a query may know; all of them for the owner."""
        if query.requester.kind is AskerKind.OWNER:
            return list(items)
        return [item for item in items if decide(self._namespaces[namespace], item, query, default).shown]

    def namespace(self, namespace: str) -> Namespace:
        """Return the gate's state of a namespace."""
        return self._namespaces[namespace]

    def unload(self, namespace: str) -> None:
        self._namespaces.pop(namespace, None)
        self._beneath.unload(namespace)

    def forget(self, namespace: str) -> None:
        self._namespaces.pop(namespace, None)
        self._store.remove(namespace)
        self._beneath.forget(namespace)

    def watch(self, serving: Callable[[bool], None]) -> None:
        self._beneath.watch(serving)

    def close(self) -> None:
        self._beneath.close()
        self._store.close()
        if self._extractor is not None:
            self._extractor.close()


def _notices(decisions: Iterable[Decision]) -> list[Notice]:
    """Return one notice per kind of decision: the number of items, and the ids of the deciding records, but no text."""
    kinds: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        kinds[f"gate_{'shown' if decision.shown else 'withheld'}_{decision.ground.value}"].append(decision)
    notices = []
    for code, group in sorted(kinds.items()):
        ids = dict.fromkeys(record_id for decision in group for record_id in decision.record_ids)
        notices.append(Notice(code, f"records {', '.join(ids)}" if ids else "", len(group)))
    return notices
