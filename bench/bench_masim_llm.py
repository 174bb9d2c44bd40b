"""Measures how busy MaSim's LLM engine keeps an endpoint that answers in 50 ms ± 20 ms, as counted by the endpoint.

The server runs in a separate process, so that its work is not the engine's. It keeps the time integral of requests
in flight; a day is busy by that integral over (concurrency × span). Two figures: over the whole, from the first request
to the last reply, and over the time in which a full set of sessions was still left, which leaves out the end that
cannot be filled.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import multiprocessing
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from aiohttp import web
from memarena_masim.config import preset, sized
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.llm import LlmEngine
from memarena_masim.output.generate import generate
from pydantic import JsonValue
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
scripted = importlib.import_module("tests.simulator.engines.scripted_llm")

CONCURRENCIES = (1, 4, 8)
SEED = 901
MEAN_S, SPREAD_S = 0.050, 0.020


@dataclass(frozen=True)
class Busy:
    """Counts of the server for a world's sessions. ``samples`` are (seconds, requests in flight) at each change."""

    sessions: int
    samples: tuple[tuple[float, int], ...]

    def share(self, concurrency: int, *, while_full: bool) -> float:
        """Return the time-weighted mean of requests in flight, divided by the concurrency."""
        began, arrivals, area, span = self.samples[0][0], 0, 0.0, 0.0
        before, flight = began, 0
        for moment, now in self.samples:
            if not (while_full and arrivals > self.sessions - concurrency):
                area += flight * (moment - before)
                span += moment - before
            arrivals += now > flight
            before, flight = moment, now
        return area / (span * concurrency)


def serve(pipe: Connection) -> None:
    """Serve the scripted endpoint: correct replies after 50 ms ± 20 ms (uniform), until it receives a stop."""
    asyncio.run(_serve(pipe))


async def _serve(pipe: Connection) -> None:
    samples: list[tuple[float, int]] = []
    flight, sessions, chance = 0, 0, random.Random(7)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal flight, sessions
        arrived = time.monotonic()
        raw = await request.content.read()
        body: dict[str, JsonValue] = json.loads(raw)
        is_session = scripted.read(body).kind == "session"
        if is_session:
            sessions += 1
            flight += 1
            samples.append((arrived, flight))
        text = scripted.perfect(body)
        wait_s = MEAN_S + SPREAD_S * (2 * chance.random() - 1)
        await asyncio.sleep(max(0.0, arrived + wait_s - time.monotonic()))
        if is_session:
            flight -= 1
            samples.append((time.monotonic(), flight))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return web.json_response(
            {"id": "r", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        )

    server = await asyncio.get_running_loop().create_server(web.Server(handle, access_log=None), "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
    while not await asyncio.to_thread(pipe.poll, 0.1):
        pass
    pipe.send(Busy(sessions, tuple(samples)))
    server.close()


def one_day(concurrency: int) -> tuple[Busy, float]:
    """Generate the sessions of a world of two days with the engine.

    Returns what the server observed, and seconds of processor time per session.
    """
    config = sized(preset("s", SEED), days=2)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    server.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/v1"
        with (
            tempfile.TemporaryDirectory() as folder,
            LlmEngine(EndpointConfig(url, "m", concurrency=concurrency)) as engine,
        ):
            cpu_s = time.process_time()
            generate(config, Path(folder) / "w", engine=engine)
            cpu_s = time.process_time() - cpu_s
        ours.send("stop")
        busy: Busy = ours.recv()
    finally:
        server.join(10)
        server.kill()
    return busy, cpu_s / busy.sessions


def tables() -> list[Table]:
    """Return a table with one row per concurrency."""
    table = Table(title="LLM engine: an endpoint of 50 ms ± 20 ms kept busy (target 95% of the set concurrency)")
    for column in (
        "concurrency",
        "sessions",
        "most in flight",
        "busy, first to last",
        "busy while sessions last",
        "ms of CPU",
    ):
        table.add_column(column, justify="right")
    for concurrency in CONCURRENCIES:
        busy, cpu_s = one_day(concurrency)
        most = max(flight for _, flight in busy.samples)
        shares = [f"{100 * busy.share(concurrency, while_full=full):.1f}%" for full in (False, True)]
        table.add_row(str(concurrency), str(busy.sessions), str(most), *shares, f"{1e3 * cpu_s:.1f}")
    return [table]
