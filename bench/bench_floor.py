"""Measures the floor of this machine, and whether the harness measures known delays correctly."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

import _awake
from _scripted import serving
from _wire import Witness, allowed, witness
from memarena.client.backend import BackendClient, Deadlines
from memarena.execution.backends.overhead_baseline import (
    first_text_ns,
    measure_gateway_added,
    measure_gateway_floor,
    measure_search_floor,
)
from memarena.gateway import CallContext, Gateway, Upstream
from memarena.log.records import GatewayCall
from memarena.readers.scripted import TOKENS
from memarena_answering import ReaderClient
from memarena_proto import memory_backend_pb2 as pb
from rich.table import Table

_SAMPLES = 500
_WARM_UP = 5
_DELAYS_MS = (0.0, 10.0, 50.0, 200.0, 1000.0)
_NOW = "2025-01-01T00:00:00Z"
_FIRST_TOKEN = json.dumps(TOKENS[0])[1:-1]
"""As it stands within a chunk."""


def tables() -> list[Table]:
    """Return the floors, and the stopwatch against programmed delays: with cores that may sleep, and kept awake."""
    result = [_floors(), _stopwatch("cores as they are")]
    with _awake.awake() as refused:
        if refused is None:
            return [*result, _stopwatch("cores kept awake")]
    result[-1].caption = f"{result[-1].caption}; cores could not be kept awake: {refused}"
    return result


def _floors() -> Table:
    """Return the round trips of Search and of the gateway without any work."""
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


@dataclass(frozen=True)
class _Timed:
    """One way of waiting, timed n times: medians in ms."""

    measured: float
    claimed: float
    """Delay that the server reports."""
    on_the_wire: float | None
    """Time from request to reply as the kernel saw them pass; None if packets may not be captured."""


def _stopwatch(cores: str) -> Table:
    """Return programmed delays next to those that the harness and the wire show."""
    table = Table(title=f"Stopwatch, {cores}: known delays, p50 in ms", padding=0)
    for column in ("set", "allowed", "n", "of", "kept", "shown", "too much", "wire", "shown - wire", "verdict"):
        table.add_column(column, justify="left" if column in ("of", "verdict") else "right")
    for delay in _DELAYS_MS:
        n = 11 if delay >= 1000 else 21
        for what, take in (("Search", _timed_searches), ("TTFT", _timed_first_tokens)):
            timed = take(delay, n)
            allowed_ms, too_much = 1 + delay / 100, timed.measured - delay
            wire, beyond = "n/a", "n/a"
            if timed.on_the_wire is not None:
                wire, beyond = f"{timed.on_the_wire:.2f}", f"{timed.measured - timed.on_the_wire:+.2f}"
            table.add_row(
                f"{delay:.0f}", f"{allowed_ms:.2f}", str(n), what, f"{timed.claimed:.2f}", f"{timed.measured:.2f}",
                f"{too_much:+.2f}", wire, beyond, "pass" if abs(too_much) <= allowed_ms else "MISSED",
            )  # fmt: skip
    table.caption = (
        "Scripted servers, each a process of its own: gRPC on h2 and HTTP/1.1 on blocking sockets; the delay counts "
        "from the kernel's time of the request's arrival, the reply is made beforehand. allowed: 1 ms + 1%, by which "
        "shown may differ from set; kept: what the server says that it waited; wire: from request to reply as the "
        "kernel saw them pass (needs CAP_NET_RAW)"
    )
    return table


def _timed_searches(delay_ms: float, n: int) -> _Timed:
    request = pb.SearchRequest(namespace="n", query_id="q", text="What?", asked_at=_NOW)
    with serving("_scripted_backend", delay_ms) as address, BackendClient(address, Deadlines()) as client:
        client.wait_until_serving()
        for _ in range(_WARM_UP):
            client.search(request)
        with _watched(address, "What?", "nothing") as wire:
            timed = [client.search(request) for _ in range(n)]
    return _of([t.duration_ns for t in timed], [t.response.search_time_us / 1e3 for t in timed], wire)


def _timed_first_tokens(delay_ms: float, n: int) -> _Timed:
    """Measure ``n`` first tokens through the gateway, of a reader that waits ``delay_ms``."""
    calls: list[GatewayCall] = []
    with ExitStack() as stack:
        address = stack.enter_context(serving("_scripted_reader", delay_ms))
        upstream = Upstream(model="scripted", base_url=f"http://{address}/v1", upstream_model="scripted")
        gateway = stack.enter_context(Gateway([upstream], calls.append))
        client = ReaderClient(gateway.base_url)
        stack.callback(client.close)

        def ask() -> None:
            token = gateway.grant(CallContext(phase="floor"))
            first_text_ns(client, upstream.model, token)
            gateway.revoke(token)

        for _ in range(_WARM_UP):
            ask()
        calls.clear()
        with _watched(address, "What?", _FIRST_TOKEN) as wire:
            for _ in range(n):
                ask()
    spans = [call.first_content_ns for call in calls if call.first_content_ns is not None]
    server_ms = [call.server_prompt_ms for call in calls if call.server_prompt_ms is not None]
    if (len(spans), len(server_ms)) != (n, n):
        raise RuntimeError(
            f"scripted reader: {len(spans)} first tokens and {len(server_ms)} delays were told, expected {n}"
        )
    return _of(spans, server_ms, wire)


def _watched(address: str, request: str, reply: str) -> AbstractContextManager[Witness | None]:
    return witness(address, request, reply) if allowed() else nullcontext()


def _of(spans_ns: Sequence[int], kept_ms: Sequence[float], tap: Witness | None) -> _Timed:
    wire = statistics.median(tap.spans_ns) / 1e6 if tap is not None and tap.spans_ns else None
    return _Timed(statistics.median(spans_ns) / 1e6, statistics.median(kept_ms), wire)


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3f}"
