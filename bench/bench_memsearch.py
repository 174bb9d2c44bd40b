"""memsearch: recall of evidence beside bm25 on a generated world, and how long it searches beyond the embedding call.

``memsearch --egos N`` asks the questions of N persons of the world (1); every day is embedded on the CPU, so more take
minutes each.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import _awake
import _ego
import numpy as np
from _measure import percentile
from aiohttp import web
from memarena.client.backend import BackendClient, Deadlines
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend
from memarena.execution.backends.process import launch
from memarena.execution.engine import execute
from memarena.execution.planning.config import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.gateway import CallContext, Gateway
from memarena.gateway.types import Upstream
from memarena.log.records import AnyRecord, FootprintTaken, IngestDone, Question, QuestionAsked
from memarena.log.store import read_records
from memarena.readers.serving import ThreadedServer
from memarena_dataset.io.reading import open_dataset
from memarena_masim.config import preset
from memarena_masim.output.generate import generate
from memarena_proto import memory_backend_pb2 as pb
from rich.table import Table

SEED = 11
EGOS = 1
TOP = 10
DIMENSIONS = 384
"""As many as multilingual-e5-small has."""
SESSIONS = 400
SEARCHES = 300
WARM_UP = 30
STRETCH = 30
MODEL = "hashed-vectors"


def tables(*options: str) -> list[Table]:
    """Both comparisons."""
    parser = argparse.ArgumentParser(prog="memsearch")
    parser.add_argument("--egos", type=int, default=EGOS)
    egos: int = parser.parse_args(options).egos
    return [_search_table(), _world_table(egos)]


# ------------------------------------------------------------------ a world, beside bm25


def _world_table(egos: int) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        world, out = Path(folder) / "world", Path(folder) / "run"
        generate(preset("s", SEED), world, workers=2)
        with open_dataset(world) as data:
            chosen = data.egos[:egos]
        values = {
            "dataset": world,
            "backends": ["bm25", "memsearch"],
            "readers": [{"spec": "extractive"}],
            "egos": chosen,
            "floor_samples": 0,
            "meters": ["none"],
        }
        execute(RunRequest(out=out, config=parse_config(values, "bench")))
        return _of_records(list(read_records(out)), len(chosen))


def _of_records(records: Sequence[AnyRecord], egos: int) -> Table:
    evidence = {
        r.instance.instance_id: set(r.instance.evidence_session_ids) for r in records if isinstance(r, Question)
    }
    recalls: dict[str, list[float]] = defaultdict(list)
    searches: dict[str, list[int]] = defaultdict(list)
    days: dict[str, list[int]] = defaultdict(list)
    turns: dict[str, list[int]] = defaultdict(list)
    disks: dict[str, float] = {}
    for record in records:
        if isinstance(record, QuestionAsked) and record.search is not None and record.search.t_search_ns is not None:
            searches[record.cell_id].append(record.search.t_search_ns)
            wanted = evidence[record.instance_id]
            found = {session for item in record.search.items[:TOP] for session in item.session_ids}
            if wanted:
                recalls[record.cell_id].append(len(wanted & found) / len(wanted))
        elif isinstance(record, IngestDone) and record.code == "OK" and record.sessions:
            days[record.cell_id].append(record.duration_ns)
            turns[record.cell_id].append(record.turns)
        elif isinstance(record, FootprintTaken) and record.cell_id is not None and record.disk.value is not None:
            disks[record.cell_id] = record.disk.value
    table = Table(
        title=f"memsearch beside bm25: preset s, seed {SEED}, {egos} egos, k = {TOP}, e5-small (4 bits) on the CPU"
    )
    for column in (
        "backend",
        "questions",
        "evidence recall@10",
        "Search p50",
        "p95",
        "ingest a day",
        "turns a day",
        "disk",
    ):
        table.add_column(column, justify="left" if column == "backend" else "right")
    for cell, spans in searches.items():
        table.add_row(
            cell.partition("@")[0],
            str(len(spans)),
            f"{statistics.mean(recalls[cell]):.3f} (n {len(recalls[cell])})",
            f"{_ms(percentile(spans, 0.5))} ms",
            f"{_ms(percentile(spans, 0.95))} ms",
            f"{percentile(days[cell], 0.5) / 1e9:.2f} s",
            f"{statistics.median(turns[cell]):.0f}",
            f"{disks[cell] / 2**20:.1f} MiB" if cell in disks else "-",
        )
    table.caption = (
        "disk: of all egos of the cell, after the last day; recall: mean share of a question's evidence sessions"
    )
    return table


# ------------------------------------------------------------------ one long life


class _Embedder:
    """Vectors that depend on the text alone: how far apart they are changes nothing of how long a search takes."""

    def __init__(self) -> None:
        self.texts = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.texts += len(body["input"])
        return _vectors(body["input"])


def _vectors(texts: Sequence[str]) -> web.Response:
    data = [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
    return web.json_response({"object": "list", "model": MODEL, "data": data})


def _vector(text: str) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS)
    return [float(value) for value in vector / np.linalg.norm(vector)]


@dataclass
class _Searched:
    """Searches under one condition, nanoseconds each: the whole, and the embedding call that is part of it."""

    condition: str
    whole: list[int] = field(default_factory=list)
    embedding: list[int] = field(default_factory=list)

    @property
    def parts(self) -> tuple[tuple[str, list[int]], ...]:
        beyond = [whole - embedding for whole, embedding in zip(self.whole, self.embedding, strict=True)]
        return (
            ("Search, sent to received", self.whole),
            ("of it the embedding call, at the gateway", self.embedding),
            ("beyond the embedding call (target 10)", beyond),
        )


def _search_table() -> Table:
    """T_search of a life of 400 sessions, apart in the embedding call and all else."""
    embedder = _Embedder()
    memsearch = choose_backend("memsearch")
    assert isinstance(memsearch, LaunchableBackend)
    with tempfile.TemporaryDirectory() as folder, ThreadedServer(embedder, "bench-embedder") as server:
        upstream = Upstream(
            model=MODEL, base_url=f"http://127.0.0.1:{server.port}/v1", upstream_model=MODEL, role="embedder"
        )
        with Gateway([upstream], lambda _: None) as gateway:
            process = launch(memsearch, Path(folder))
            try:
                with BackendClient(process.address, Deadlines(ingest_s=1800)) as client:
                    client.wait_until_serving(process.alive)
                    last = _ingest(client, gateway)
                    chunks = embedder.texts
                    searched = _timed_searches(client, gateway, last)
            finally:
                process.stop()
    table = Table(title=f"memsearch: Search over {SESSIONS} sessions of released length, {chunks} chunks")
    for column in ("processor", "part", "n", "p50", "p95"):
        table.add_column(column, justify="left" if column in {"processor", "part"} else "right")
    for one in searched:
        for part, spans in one.parts:
            numbers = (_ms(percentile(spans, 0.5)), _ms(percentile(spans, 0.95))) if spans else ("n/a", "n/a")
            table.add_row(one.condition, part, str(len(spans)), *numbers)
    table.caption = f"ms; vectors of {DIMENSIONS} dimensions from a server that hashes, so that the parts stay apart"
    return table


def _timed_searches(client: BackendClient, gateway: Gateway, last_day: int) -> tuple[_Searched, _Searched]:
    """The same number of searches with a processor that sleeps as it likes and with one that is kept awake, in turn."""
    asleep, kept = _Searched("may sleep"), _Searched("kept awake")
    for number, question in enumerate(_ego.questions(SEED + 2, WARM_UP + 2 * SEARCHES)):
        # In stretches: each search finds the processor in the state that the one before it left.
        timed = kept if number // STRETCH % 2 else asleep
        with _awake.awake() if timed is kept else nullcontext() as refused:
            if refused is not None:
                kept.condition = f"kept awake: {refused}"
                continue
            took, of_it = _search(client, gateway, question, last_day)
        if number >= WARM_UP:
            timed.whole.append(took)
            timed.embedding.append(of_it)
    return asleep, kept


def _ingest(client: BackendClient, gateway: Gateway) -> int:
    """Give the backend the first 400 sessions of a life; index of the last day."""
    left, day = SESSIONS, -1
    for frames in _ego.days(SEED):
        sessions = [frame for frame in frames if frame.HasField("session")][:left]
        left -= len(sessions)
        header = frames[0].header
        day = header.day_index
        token = gateway.grant(CallContext("ingest"))
        header.model_access.CopyFrom(_access(gateway, token))
        client.ingest(_ego.sealed([pb.IngestRequest(header=header), *sessions]))
        gateway.revoke(token)
        if not left:
            break
    return day


def _search(client: BackendClient, gateway: Gateway, question: str, day: int) -> tuple[int, int]:
    """Nanoseconds of one Search, and those of its embedding call as the gateway took them."""
    token = gateway.grant(CallContext("search"))
    request = pb.SearchRequest(
        namespace=_ego.NAMESPACE,
        query_id="q",
        text=question,
        asked_at="2025-01-16T00:00:00+00:00",
        as_of_day=day,
        requester=pb.Requester(kind=pb.REQUESTER_KIND_OWNER),
        model_access=_access(gateway, token),
    )
    timed = client.search(request)
    (call,) = gateway.revoke(token)
    assert call.received_to_forwarded_ns is not None
    assert call.done_ns is not None
    if len(timed.response.items) != TOP:
        raise RuntimeError(f"memsearch returned {len(timed.response.items)} items, expected {TOP}")
    return timed.duration_ns, call.received_to_forwarded_ns + call.done_ns


def _access(gateway: Gateway, token: str) -> pb.ModelAccess:
    models = [pb.Model(name=MODEL, role=pb.MODEL_ROLE_EMBEDDER)]
    return pb.ModelAccess(base_url=gateway.base_url, token=token, models=models)


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.2f}"
