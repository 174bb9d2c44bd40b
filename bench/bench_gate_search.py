"""What the gate costs a search and an answer over gRPC: ``make bench ARGS='gate-search --dataset DIR'``.

bm25, gated over bm25 as a library and gated over a bm25 at an address are processes of their own, hold the same days of
one ego, and are asked in turn. Every question of the ego is asked by each person of its permission questions, since
the owner's searches pass the gate unread. Answers are read by a scripted reader without delay, so that their time to
the first token is that of search, gate and prompt.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from _measure import percentile
from _scripted import serving
from memarena.client.backend import AnswerTrace, BackendClient, Deadlines
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend
from memarena.execution.backends.process import launch
from memarena.execution.cells.messages import answer_request, day_batch, search_request
from memarena.execution.cells.opaque_ids import NamespaceIds
from memarena.execution.planning.questions import plan_questions
from memarena.log.manifest import Reading
from memarena.log.records import Question
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_proto import memory_backend_pb2 as pb
from rich.table import Table

READING = Reading(max_answer_tokens=64, max_items=10, max_context_tokens=8_192)
BENEATH, LIBRARY, PROXY = "bm25", "gated, over a library", "gated, over HOST:PORT"
SEARCHES, ANSWERS, WARM_UP = 600, 200, 30


@dataclass
class Spans:
    """Of one backend, in nanoseconds: searches, answers until the first token."""

    search_ns: list[int] = field(default_factory=list)
    answer_ns: list[int] = field(default_factory=list)
    gate_us: list[int] = field(default_factory=list)
    """The gate's own share of a search, in microseconds, by its notice."""


def measure(folder: Path) -> tuple[Mapping[str, Spans], int]:
    """Spans by backend, and how many turns the ego has heard."""
    dataset = open_dataset(folder)
    questions = plan_questions(dataset, dataset.instances, "end_of_horizon", 0)
    ego = min(q.instance.ego_agent_id for q in questions if _is_asked_by_a_person(q))
    own = [question for question in questions if question.instance.ego_agent_id == ego]
    ids = NamespaceIds(b"bench", "gate", ego, 0)
    last = max(question.day for question in own)
    days = [day_batch(dataset, ego, day, ids, None).frames for day in range(last + 1)]
    turns = sum(len(frame.session.turns) for frames in days for frame in frames)
    with _clients() as clients, serving("_scripted_reader", 0.0) as reader:
        for client, frames in product(clients.values(), days):
            client.ingest(frames)
        return _timed(clients, _searches(own, ids, last), f"http://{reader}/v1"), turns


def _is_asked_by_a_person(question: Question) -> bool:
    return question.instance.family is Family.PERMISSION and question.requester_kind != "owner"


def _searches(questions: Sequence[Question], ids: NamespaceIds, last: int) -> list[pb.SearchRequest]:
    requests = [search_request(question, READING, ids, ()) for question in questions]
    askers = [r.requester for r, question in zip(requests, questions, strict=True) if _is_asked_by_a_person(question)]
    searches = []
    for request, asker in product(requests, askers):
        search = pb.SearchRequest()
        search.CopyFrom(request)
        search.requester.CopyFrom(asker)
        search.as_of_day = last
        searches.append(search)
    return searches


@contextmanager
def _clients() -> Iterator[Mapping[str, BackendClient]]:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))

        def started(name: str, number: int, settings: Mapping[str, str]) -> BackendClient:
            backend = choose_backend(name)
            assert isinstance(backend, LaunchableBackend)
            process = launch(backend, folder / str(number), settings=settings)
            opened.callback(process.stop)
            client = opened.enter_context(BackendClient(process.address, Deadlines()))
            client.wait_until_serving(process.alive)
            return client

        beneath = started("bm25", 0, {})

        hidden = started("bm25", 1, {})
        library = started("gated", 2, {})
        yield {BENEATH: beneath, LIBRARY: library, PROXY: started("gated", 3, {"GATED_ADDRESS": hidden.address})}


def _timed(
    clients: Mapping[str, BackendClient], searches: Sequence[pb.SearchRequest], reader_url: str
) -> Mapping[str, Spans]:
    spans = {name: Spans() for name in clients}
    for number in range(WARM_UP + SEARCHES):
        for name, client in clients.items():
            timed = client.search(searches[number % len(searches)])
            if number >= WARM_UP:
                spans[name].search_ns.append(timed.duration_ns)
                spans[name].gate_us += [n.count for n in timed.response.notices if n.code == "gate_us"]
    model = pb.Model(name="scripted-reader", role=pb.MODEL_ROLE_READER, context_window_tokens=16_384)
    for number in range(WARM_UP + ANSWERS):
        for name, client in clients.items():
            request = answer_request(searches[number % len(searches)], READING, model.name, "text_sessions")
            request.search.model_access.CopyFrom(pb.ModelAccess(base_url=reader_url, token="none", models=[model]))
            trace = AnswerTrace()
            client.answer(request, trace)
            if number >= WARM_UP and trace.first_delta_ns is not None:
                spans[name].answer_ns.append(trace.first_delta_ns)
    return spans


def tables(*options: str) -> list[Table]:
    """Search and Answer with and without the gate, in one run."""
    parser = argparse.ArgumentParser(prog="bench gate-search")
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR")
    spans, turns = measure(parser.parse_args(options).dataset)
    return [_table(spans, turns)]


def _table(spans: Mapping[str, Spans], turns: int) -> Table:
    table = Table(title=f"asked in turn by people who are not the owner, ten items, {turns} turns (ms)")
    for column in ("call", "backend", "n", "p50", "p95", "p50 above bm25"):
        table.add_column(column, justify="left" if column in ("call", "backend") else "right")
    for call in ("Search", "Answer, first token"):
        for name, each in spans.items():
            durations, beneath = (s.search_ns if call == "Search" else s.answer_ns for s in (each, spans[BENEATH]))
            above = percentile(durations, 0.5) - percentile(beneath, 0.5)
            figures = (percentile(durations, 0.5), percentile(durations, 0.95), above)
            table.add_row(call, name, str(len(durations)), *(f"{figure / 1e6:.2f}" for figure in figures))
    gate = spans[LIBRARY].gate_us
    table.caption = (
        f"the gate itself: p50 {percentile(gate, 0.5) / 1e3:.2f} ms, p95 {percentile(gate, 0.95) / 1e3:.2f} ms"
    )
    return table
