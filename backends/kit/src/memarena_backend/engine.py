"""Implements Ingest, Search, Forget and Reset over any memory: which days count, and which calls may overlap.

The day store is the source of truth; the memory's content is derived from it. Whenever the two might differ (after a
restart, a failed or a cancelled commit), the memory's content is dropped and rebuilt from the store on the next call.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grpc
from memarena_proto import memory_backend_pb2 as pb

from memarena_backend.calls import Call
from memarena_backend.day_decoder import DayAssembler, ReceivedDay
from memarena_backend.errors import CallError, above_limit, failed_precondition
from memarena_backend.fitting import tokens_by_bytes
from memarena_backend.forgetting import Target
from memarena_backend.memory import Memory
from memarena_backend.namespace_lock import Gate
from memarena_backend.records import Capability, Notice, Query, SearchResult, TokenCounting
from memarena_backend.store import DayStore


class MemoryFaultError(Exception):
    """A memory returned a result that the contract forbids. The call ends with INTERNAL."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """The result of an Ingest: the day is durable and searchable. ``replayed``: it had been committed before."""

    replayed: bool
    visible_through_day: int
    notices: Sequence[Notice]


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The result of a search, and the last day that it covered. ``search_time_us`` is spent in the memory itself."""

    result: SearchResult
    visible_through_day: int
    search_time_us: int


class Engine:
    """Runs a memory by the rules of the contract. Every method raises CallError."""

    def __init__(self, memory: Memory, store: DayStore) -> None:
        self.memory = memory
        self.description = memory.describe()
        self._store = store
        self._gate = Gate(self.description.limits.max_concurrent_namespaces)
        self._visible_through: dict[str, int] = {}
        """Last committed day by namespace, for the namespaces that the memory holds right now."""
        self._loading: dict[str, threading.Lock] = {}

    # -------------------------------------------------------------- Ingest

    def ingest(self, header: pb.DayHeader, rest: Iterator[pb.IngestRequest], call: Call) -> Ingested:
        """Ingest one day atomically: its header, and the frames after it (``rest``)."""
        assembler = DayAssembler(self.description.limits.max_turn_text_bytes)
        assembler.add(pb.IngestRequest(header=header))
        namespace = header.namespace
        with self._gate.alone(namespace, call):
            committed = self._store.find_batch(namespace, header.batch_id)
            last = self._store.last_day(namespace)
            if committed is None and last is not None and header.day_index <= last:
                raise failed_precondition(
                    f"day {header.day_index} is not above the last committed day {last} of the namespace"
                )
            size, max_bytes = pb.IngestRequest(header=header).ByteSize(), self.description.limits.max_day_bytes
            for frame in rest:
                size += frame.ByteSize()
                if max_bytes is not None and size > max_bytes:
                    raise above_limit("day", size, max_bytes)
                assembler.add(frame)
            received = assembler.finish()
            call.check()
            if last is not None:
                self._load(namespace, last, call)
            if committed is None:
                return Ingested(False, received.day.index, self._commit(received, call))
            if committed.digest != received.digest:
                raise CallError(
                    grpc.StatusCode.ALREADY_EXISTS,
                    f"batch {header.batch_id!r} is committed as day {committed.day_index} with another digest",
                )
            assert last is not None
            return Ingested(True, last, ())

    def _commit(self, received: ReceivedDay, call: Call) -> Sequence[Notice]:
        namespace = received.namespace
        try:
            notices = self.memory.commit_day(namespace, received.day, call)
            # Only now, so that no day is committed whose caller has gone, or that the memory failed to ingest.
            call.check()
            self._store.commit(received)
        except BaseException:
            self._visible_through.pop(namespace, None)
            self.memory.unload(namespace)
            raise
        self._visible_through[namespace] = received.day.index
        return notices

    def _load(self, namespace: str, last: int, call: Call) -> None:
        """Restore the namespace from the store unless the memory holds it. ``last``: its last committed day."""
        if namespace in self._visible_through:
            return
        # Searches run at the same time: the first of them restores, the others wait for it.
        with self._loading.setdefault(namespace, threading.Lock()):
            if namespace in self._visible_through:
                return
            self.memory.unload(namespace)
            try:
                self.memory.restore(namespace, self._store.days(namespace), call.without_models())
            except BaseException:
                self.memory.unload(namespace)
                raise
            self._visible_through[namespace] = last

    # -------------------------------------------------------------- Search

    def search(self, namespace: str, query: Query, call: Call) -> SearchOutcome:
        """Search the memory for a question, and check the result against the contract."""
        with self._gate.shared(namespace, call):
            visible = self._visible(namespace, query.as_of_day, call)
            started_ns = time.perf_counter_ns()
            result = self.memory.search(namespace, query, call)
            search_time_us = (time.perf_counter_ns() - started_ns) // 1000
        self._check_result(result, query)
        return SearchOutcome(result, visible, search_time_us)

    def _visible(self, namespace: str, as_of_day: int, call: Call) -> int:
        """Load the memory, and return the last day that the search may see (SRC-5, SRC-6)."""
        last = self._visible_through.get(namespace)
        if last is None:
            last = self._store.last_day(namespace)
            if last is None:
                raise CallError(grpc.StatusCode.NOT_FOUND, "the namespace has no committed day", field="namespace")
            self._load(namespace, last, call)
        if as_of_day == last:
            return last
        if as_of_day > last:
            raise failed_precondition(f"as_of_day {as_of_day} is not committed yet; the last committed day is {last}")
        if Capability.TIME_TRAVEL not in self.description.capabilities:
            raise failed_precondition(
                f"as_of_day {as_of_day} is before the last committed day {last}, and TIME_TRAVEL is not declared"
            )
        earlier = self._store.day_at(namespace, as_of_day)
        if earlier is None:
            raise failed_precondition(f"as_of_day {as_of_day} is before the first committed day")
        return earlier

    def _check_result(self, result: SearchResult, query: Query) -> None:
        """Raise MemoryFaultError if the result breaks the contract, so that such a result is never scored."""
        for position, item in enumerate(result.items):
            if not item.text:
                raise MemoryFaultError(f"item {position} has no text")
            if not math.isfinite(item.score):
                raise MemoryFaultError(f"item {position} has the score {item.score}")
        if query.max_items is not None and len(result.items) > query.max_items:
            raise MemoryFaultError(f"{len(result.items)} items, max_items is {query.max_items}")
        if (
            query.max_context_tokens is not None
            and self.description.token_counting is TokenCounting.UTF8_BYTES_DIV_4
            and (tokens := sum(tokens_by_bytes(item.text) for item in result.items)) > query.max_context_tokens
        ):
            raise MemoryFaultError(f"{tokens} tokens, max_context_tokens is {query.max_context_tokens}")

    # -------------------------------------------------------------- Forget

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        """Delete a part of the committed days from the store; return how many turns and events were deleted.

        The memory drops the whole namespace and is rebuilt from the remaining content by the next call, so that nothing
        derived from the deleted part remains.
        """
        with self._gate.alone(namespace, call):
            if self._store.last_day(namespace) is None:
                raise CallError(grpc.StatusCode.NOT_FOUND, "the namespace has no committed day", field="namespace")
            deleted = self._store.rewrite(namespace, target.frames_without)
            self._visible_through.pop(namespace, None)
            self.memory.forget(namespace)
            return deleted

    # -------------------------------------------------------------- Reset

    def reset(self, namespace: str, call: Call) -> None:
        """Delete a namespace from the memory and the store; does nothing if it does not exist."""
        with self._gate.alone(namespace, call):
            self._visible_through.pop(namespace, None)
            self.memory.forget(namespace)
            self._store.remove(namespace)
            self._loading.pop(namespace, None)
