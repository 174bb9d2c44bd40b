"""Measures the floor of this machine: the times of a Search and a model call if backend and reader do nothing.

Times close to the floor say little about a memory. The floor is published next to all times, and never subtracted.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from memarena_answering import (
    Asker,
    Completion,
    ContextItem,
    ReaderCallError,
    ReaderClient,
    ReadingPlan,
    build_prompt,
    count_by_bytes,
)
from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import BackendClient, Deadlines
from memarena.client.errors import BackendCallError
from memarena.execution.backends.manifests import BackendManifest, LaunchableBackend
from memarena.execution.backends.process import LaunchError, launch
from memarena.execution.errors import InfraError
from memarena.gateway import CallContext, Gateway
from memarena.log.records import FloorMeasured, GatewayCall
from memarena.readers.scripted import NullReader

_WARM_UP = 20
"""Round trips before those that count."""
_NOW = "2025-01-01T00:00:00Z"

NULL_BACKEND = LaunchableBackend(
    name="null",
    manifest=BackendManifest(
        name="null",
        kind="diagnostic",
        command=("{python}", "-m", "memarena.execution.backends.null_backend", "--address-file", "{address_file}"),
    ),
    folder=Path(sys.prefix),
)


def measure_floor(work_dir: Path, samples: int) -> FloorMeasured:
    """Measure Search, the gateway, and the delay by the gateway, each ``samples`` times after a warm-up.

    Raises InfraError if a call fails.
    """
    try:
        return FloorMeasured(
            search_ns=measure_search_floor(work_dir, samples),
            gateway_hop_ns=measure_gateway_floor(samples),
            gateway_added_ns=measure_gateway_added(samples),
        )
    except (LaunchError, BackendCallError, ReaderCallError) as error:
        raise InfraError(f"the floor of this machine could not be measured: {error}") from error


def measure_search_floor(work_dir: Path, samples: int) -> tuple[int, ...]:
    """Return round trips of Search with the null backend in its own process, in nanoseconds, sorted."""
    request = pb.SearchRequest(namespace="n", query_id="q", text="What is the floor?", asked_at=_NOW)
    process = launch(NULL_BACKEND, work_dir)
    try:
        with BackendClient(process.address, Deadlines()) as client:
            client.wait_until_serving(process.alive)
            spans = [client.search(request).duration_ns for _ in range(samples + _WARM_UP)]
    finally:
        process.stop()
    return tuple(sorted(spans[_WARM_UP:]))


def measure_gateway_floor(samples: int) -> tuple[int, ...]:
    """Return TTFT at the gateway for a reader that answers at once, in nanoseconds, sorted."""
    calls: list[GatewayCall] = []
    with NullReader() as reader, Gateway([reader.upstream()], calls.append) as gateway:
        plan = ReadingPlan(model=reader.upstream().model, max_tokens=16)
        prompt = build_prompt([ContextItem("nothing")], "What?", _NOW, Asker("owner"), plan, count_by_bytes)
        client = ReaderClient(gateway.base_url)
        for _ in range(samples + _WARM_UP):
            token = gateway.grant(CallContext(phase="floor"))
            completions = [e for e in client.stream(prompt, plan, token, 30.0) if isinstance(e, Completion)]
            if len(completions) != 1:
                raise RuntimeError("the null reader did not complete")
            gateway.revoke(token)
        client.close()
    spans = [call.first_content_ns for call in calls[_WARM_UP:]]
    return tuple(sorted(span for span in spans if span is not None))


def measure_gateway_added(samples: int) -> tuple[int, ...]:
    """Return the delay of the first token by the gateway for its caller, for each pair of calls, in ns, sorted.

    Each pair is a call through the gateway and a direct one to the same null reader; a difference may be negative.
    """
    added_ns = []
    with NullReader() as reader, Gateway([reader.upstream()], lambda call: None) as gateway:
        through, direct = ReaderClient(gateway.base_url), ReaderClient(reader.base_url)
        for _ in range(samples + _WARM_UP):
            token = gateway.grant(CallContext(phase="floor"))
            with_it = first_text_ns(through, reader.upstream().model, token)
            gateway.revoke(token)
            added_ns.append(with_it - first_text_ns(direct, reader.upstream().upstream_model, "none"))
        through.close()
        direct.close()
    return tuple(sorted(added_ns[_WARM_UP:]))


def first_text_ns(client: ReaderClient, model: str, token: str) -> int:
    """Return the time until the first text of the reply to a short prompt; the rest of the reply is read too."""
    plan = ReadingPlan(model=model, max_tokens=16)
    prompt = build_prompt([ContextItem("nothing")], "What?", _NOW, Asker("owner"), plan, count_by_bytes)
    began = time.monotonic_ns()
    stream = client.stream(prompt, plan, token, 30.0)
    next(stream)
    span = time.monotonic_ns() - began
    for _event in stream:
        pass
    return span
