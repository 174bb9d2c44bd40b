"""What many searches show is advice, since no clause sets a number: times that grow, matches that are not ranked."""

from __future__ import annotations

import statistics
import time
from itertools import pairwise

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError, SkippedError
from memarena.conformance.expectations import differs, mentions
from memarena.conformance.memory_use import memory_reader

_SEARCHES = 500
_AT_MOST_S = 6.0
_AT_LEAST = 40
_GROWTH = 2.0
_GROWTH_MS = 5.0
_FACTS = 12
_MEMORY_EVERY = 50
_LEAK_BYTES = 4 << 20


@check("src.endurance", "SRC-7", applies=requirements.stable_search, advisory=True)
def endurance(backend: BackendUnderTest) -> None:
    """Five hundred searches neither slow down, nor take more and more memory, nor change what is returned."""
    ns, fact = backend.namespace(), backend.fact()
    ns.add(fact)
    before = ns.items(fact)
    end = time.monotonic() + _AT_MOST_S
    took_ms: list[float] = []
    resident, held = memory_reader(backend.wire.target), []
    while len(took_ms) < _SEARCHES and time.monotonic() < end:
        began = time.perf_counter()
        items = ns.search(fact.question).items
        took_ms.append((time.perf_counter() - began) * 1000)
        if len(took_ms) % _MEMORY_EVERY == 0 and (size := resident()) is not None:
            held.append(size)
        if differs(before, items):
            raise BrokenError(f"search {len(took_ms)} returns other items than the first")
    if len(took_ms) < _AT_LEAST:
        raise SkippedError(f"{len(took_ms)} searches in {_AT_MOST_S:g} s are too few to tell")
    part = len(took_ms) // 5
    first, last = statistics.median(took_ms[:part]), statistics.median(took_ms[-part:])
    if last > _GROWTH * first and last - first > _GROWTH_MS:
        raise BrokenError(
            f"over {len(took_ms)} searches the median grew from {first:.1f} ms (the first {part}) to {last:.1f} ms"
        )
    steps = [after - earlier for earlier, after in pairwise(held[1:])]
    if steps and sum(steps) > _LEAK_BYTES and all(step > _LEAK_BYTES // 20 for step in steps):
        raise BrokenError(
            f"over {len(took_ms)} searches the backend's memory grew by {sum(steps) / 1e6:.0f} MB and did not stop "
            f"({', '.join(f'{size / 1e6:.0f}' for size in held[1:])} MB, every {_MEMORY_EVERY} searches)"
        )


@check("src.ranking", "SRC-1", applies=requirements.recall, advisory=True)
def ranking(backend: BackendUnderTest) -> None:
    """What a question names by its own word is among the first items."""
    ns, shared = backend.namespace(), backend.words.next()
    facts = [backend.fact() for _ in range(_FACTS)]
    ns.add(*facts)
    late = []
    for fact in facts:
        items = ns.search(f"What is {shared} or {fact.value}?").items
        index = next((n for n, item in enumerate(items) if mentions([item], fact)), None)
        if index is None or index > 2:
            late.append("not returned" if index is None else str(index + 1))
    if len(late) > _FACTS // 4:
        raise BrokenError(f"{len(late)} of {_FACTS} facts are not among the first three items: {', '.join(late)}")
