"""The floor of this machine, and whether the stopwatch shows programmed delays as they are."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from memarena.client.backend import BackendClient, Deadlines
from memarena.gateway import CallContext, Gateway
from memarena.log.records import GatewayCall
from memarena.readers import NullReader, Script
from memarena.run.floor import first_text_ns, measure_gateway_added, measure_gateway_floor, measure_search_floor
from memarena.run.null_backend import serve
from memarena_answering import ReaderClient
from memarena_proto import memory_backend_pb2 as pb
from rich.table import Table

_SAMPLES = 500
_DELAYS_MS = (0.0, 10.0, 50.0, 200.0, 1000.0)
_NOW = "2025-01-01T00:00:00Z"


def tables() -> list[Table]:
    """The floors, then the stopwatch against programmed delays."""
    return [_floors(), _stopwatch()]


def _floors() -> Table:
    table = Table(title="Floor: round trips when nobody does anything (ms)")
    for column in ("what", "n", "p50", "p99"):
        table.add_column(column, justify="left" if column == "what" else "right")
    with tempfile.TemporaryDirectory() as folder:
        search = measure_search_floor(Path(folder), _SAMPLES)
    for what, spans in (
        ("Search, null backend in its own process (target p50 0.6)", search),
        ("gateway, request forwarded to first content, null reader", measure_gateway_floor(_SAMPLES)),
        ("gateway hop: with gateway minus without, client's view (target p50 1.5)", measure_gateway_added(_SAMPLES)),
    ):
        ordered = sorted(spans)
        table.add_row(what, str(len(ordered)), _ms(statistics.median(ordered)), _ms(ordered[int(len(ordered) * 0.99)]))
    return table


def _stopwatch() -> Table:
    table = Table(title="Stopwatch: programmed delays as measured (ms); wanted within 1 ms + 1% at p50")
    for column in ("programmed", "n", "Search p50", "error", "TTFT p50", "error"):
        table.add_column(column, justify="right")
    floor_search = floor_ttft = 0.0
    for delay in _DELAYS_MS:
        n = 5 if delay >= 1000 else 21
        search = statistics.median(_timed_searches(delay, n)) / 1e6
        ttft = statistics.median(_timed_first_tokens(delay, n)) / 1e6
        if not delay:
            floor_search, floor_ttft = search, ttft
        table.add_row(
            f"{delay:.0f}",
            str(n),
            f"{search:.2f}",
            f"{search - delay:+.2f}",
            f"{ttft:.2f}",
            f"{ttft - delay:+.2f}",
        )
    table.caption = f"the floor is part of each figure: {floor_search:.2f} ms for Search, {floor_ttft:.2f} ms for TTFT"
    return table


def _timed_searches(delay_ms: float, n: int) -> list[int]:
    server, address = serve("127.0.0.1:0", delay_ms)
    request = pb.SearchRequest(namespace="n", query_id="q", text="What?", asked_at=_NOW)
    try:
        with BackendClient(address, Deadlines()) as client:
            client.wait_until_serving()
            return [client.search(request).duration_ns for _ in range(n)]
    finally:
        server.stop(grace=0).wait()


def _timed_first_tokens(delay_ms: float, n: int) -> list[int]:
    calls: list[GatewayCall] = []
    with (
        NullReader(Script(first_token_delay_s=delay_ms / 1e3)) as reader,
        Gateway([reader.upstream()], calls.append) as gateway,
    ):
        client = ReaderClient(gateway.base_url)
        for _ in range(n):
            token = gateway.grant(CallContext(phase="floor"))
            first_text_ns(client, reader.upstream().model, token)
            gateway.revoke(token)
    return [call.first_content_ns for call in calls if call.first_content_ns is not None]


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3f}"
