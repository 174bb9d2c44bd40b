"""The floor of this machine: what a Search and a model call cost when nobody does anything.

It is published beside every timing, never subtracted from one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import BackendClient, Deadlines
from memarena.run.launch import launch
from memarena.run.manifests import BackendManifest, LaunchableBackend

_WARM_UP = 20
NULL_BACKEND = LaunchableBackend(
    name="null",
    manifest=BackendManifest(
        name="null",
        kind="diagnostic",
        command=("{python}", "-m", "memarena.run.null_backend", "--address-file", "{address_file}"),
    ),
    folder=Path(sys.prefix),
)


def measure_search_floor(work_dir: Path, samples: int) -> tuple[int, ...]:
    """Round trips of Search with the null backend in a process of its own, in nanoseconds, sorted."""
    process = launch(NULL_BACKEND, work_dir)
    try:
        with BackendClient(process.address, Deadlines()) as client:
            client.wait_until_serving(process.alive)
            request = pb.SearchRequest(
                namespace="n", query_id="q", text="What is the floor?", asked_at="2025-01-01T00:00:00Z"
            )
            spans = [client.search(request).duration_ns for _ in range(samples + _WARM_UP)]
    finally:
        process.stop()
    return tuple(sorted(spans[_WARM_UP:]))
