"""Compares bm25's index with the package rank-bm25 in one process, and its Search with the null backend's over gRPC."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import _ego
import numpy as np
from _measure import interleaved, percentile
from memarena.client.backend import BackendClient, Deadlines
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend
from memarena.execution.backends.overhead_baseline import NULL_BACKEND
from memarena.execution.backends.process import launch
from memarena_backend import Day
from memarena_backend.day_decoder import DayAssembler
from memarena_backend_bm25.okapi import OkapiCorpus
from memarena_backend_bm25.passages import passages_of, tokenize
from memarena_backend_bm25.ranking import best
from memarena_backend_bm25.reference import ReferenceIndex
from memarena_proto import memory_backend_pb2 as pb
from rich.table import Table

SEED = 4_200
TOP = 10
ENGINE_QUERIES = 130
SEARCHES = 700
WARM_UP = 50


@dataclass(frozen=True)
class EngineFigures:
    """Scoring and ranking of the same questions by both engines, in nanoseconds."""

    turns: int
    postings: int
    index_ns: int
    fast_ns: list[int]
    reference_ns: list[int]
    largest_difference: float
    same_order: int


@dataclass(frozen=True)
class SearchFigures:
    """Search through gRPC in turn with the null backend, and ingest of the life before it, in nanoseconds."""

    search_ns: list[int]
    floor_ns: list[int]
    ingest_day_ns: list[int]
    advisory_us: list[int]


def engines() -> EngineFigures:
    """Measure both engines on the same 4,200 passages, called in turn."""
    documents = [passage.tokens() for frames in _ego.days(SEED) for passage in passages_of(_day(frames))]
    corpus = OkapiCorpus()
    corpus.add(documents)
    began = time.perf_counter_ns()
    fast = corpus.index()
    index_ns = time.perf_counter_ns() - began
    reference = ReferenceIndex(documents)
    queries = [tokenize(question) for question in _ego.questions(SEED + 1, ENGINE_QUERIES)]
    fast_ns, reference_ns = interleaved(
        [
            lambda n: best(fast.scores(queries[n % len(queries)]), TOP),
            lambda n: best(reference.scores(queries[n % len(queries)]), TOP),
        ],
        rounds=ENGINE_QUERIES,
        warm_up=3,
    )
    pairs = [(fast.scores(tokens), reference.scores(tokens)) for tokens in queries]
    return EngineFigures(
        turns=len(documents),
        postings=len(fast.documents),
        index_ns=index_ns,
        fast_ns=fast_ns,
        reference_ns=reference_ns,
        largest_difference=max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs),
        same_order=sum(np.array_equal(best(ours, TOP), best(theirs, TOP)) for ours, theirs in pairs),
    )


def searches() -> SearchFigures:
    """Search bm25 and the null backend in turn over gRPC, each a separate process."""
    bm25 = choose_backend("bm25")
    assert isinstance(bm25, LaunchableBackend)
    with tempfile.TemporaryDirectory() as folder:
        null_process = launch(NULL_BACKEND, Path(folder) / "null")
        bm25_process = launch(bm25, Path(folder) / "bm25")
        try:
            with (
                BackendClient(null_process.address, Deadlines()) as null_client,
                BackendClient(bm25_process.address, Deadlines()) as client,
            ):
                null_client.wait_until_serving(null_process.alive)
                client.wait_until_serving(bm25_process.alive)
                return _search_both(null_client, client)
        finally:
            bm25_process.stop()
            null_process.stop()


def _search_both(null_client: BackendClient, client: BackendClient) -> SearchFigures:
    """Ingest the days into bm25, then search both backends in turn; return the spans without warm-up."""
    ingest_day_ns = [client.ingest(frames)[1] for frames in _ego.days(SEED)]
    requests = [_request(question) for question in _ego.questions(SEED + 2, 200)]
    # The client's own span, taken on the thread of the call, as the harness reports it.
    spans: tuple[list[int], list[int]] = ([], [])
    advisory_us: list[int] = []
    for number in range(WARM_UP + SEARCHES):
        request = requests[number % len(requests)]
        floor, measured = null_client.search(request), client.search(request)
        if len(measured.response.items) != TOP:
            raise RuntimeError(f"bm25 returned {len(measured.response.items)} items, expected {TOP}")
        if number >= WARM_UP:
            spans[0].append(floor.duration_ns)
            spans[1].append(measured.duration_ns)
            advisory_us.append(measured.response.search_time_us)
    return SearchFigures(spans[1], spans[0], ingest_day_ns, advisory_us)


def tables() -> list[Table]:
    """Return the tables of both comparisons, for one ego of 4,200 turns."""
    return [_engine_table(engines()), _search_table(searches())]


def _engine_table(f: EngineFigures) -> Table:
    table = Table(title=f"bm25: scoring and ranking {f.turns:,} turns, both engines in one process (ms per question)")
    for column in ("engine", "n", "p50", "p99"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for engine, spans in (("fast (sparse index)", f.fast_ns), ("reference (rank-bm25)", f.reference_ns)):
        table.add_row(engine, str(len(spans)), _ms(percentile(spans, 0.5)), _ms(percentile(spans, 0.99)))
    ratio = percentile(f.reference_ns, 0.5) / percentile(f.fast_ns, 0.5)
    table.caption = (
        f"{ratio:.0f} times faster at p50 (target 20); largest difference of a score {f.largest_difference:g}; "
        f"same first {TOP} in {f.same_order} of {ENGINE_QUERIES} questions; "
        f"{f.postings:,} postings indexed in {_ms(f.index_ns)} ms"
    )
    return table


def _search_table(f: SearchFigures) -> Table:
    table = Table(title="bm25: Search over gRPC in turn with the null backend (ms)")
    for column in ("backend", "n", "p50", "p99"):
        table.add_column(column, justify="left" if column == "backend" else "right")
    for backend, spans in (("null (the floor)", f.floor_ns), ("bm25, 4,200 turns, k = 10", f.search_ns)):
        table.add_row(backend, str(len(spans)), _ms(percentile(spans, 0.5)), _ms(percentile(spans, 0.99)))
    above = percentile(f.search_ns, 0.5) - percentile(f.floor_ns, 0.5)
    table.caption = (
        f"p50 {_ms(above)} ms above the floor (target 0.4); of it in the memory itself "
        f"{percentile(f.advisory_us, 0.5) / 1e3:.3f} ms; ingest of a day of 280 turns "
        f"p50 {_ms(percentile(f.ingest_day_ns, 0.5))} ms, last day {_ms(f.ingest_day_ns[-1])} ms"
    )
    return table


def _day(frames: list[pb.IngestRequest]) -> Day:
    assembler = DayAssembler()
    for frame in frames:
        assembler.add(frame)
    return assembler.finish().day


def _request(question: str) -> pb.SearchRequest:
    return pb.SearchRequest(
        namespace=_ego.NAMESPACE,
        query_id="q",
        text=question,
        asked_at="2025-01-16T00:00:00+00:00",
        as_of_day=_ego.DAYS - 1,
        requester=pb.Requester(kind=pb.REQUESTER_KIND_OWNER),
    )


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3f}"
