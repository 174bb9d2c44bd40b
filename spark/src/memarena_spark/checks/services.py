"""Checks that the model servers were started in the right order, with the right flags, and that they work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memarena_spark.errors import Refusal
from memarena_spark.facts import DeclaredOrder, Embedder, ReaderServer, Unknown
from memarena_spark.node import Node
from memarena_spark.plans import EmbedderSpec, Plan, ReaderServerSpec
from memarena_spark.refusal_codes import refusal

SETTLE_S = 2.0
"""Seconds until the server has counted the last request of this program."""
_CONTAINED = re.compile(r"(^|=)image:|:\d+$")
"""Matches a backend that is an image, or is reached at an address."""
QUIET_S = 35.0
"""Seconds of waiting, longer than the usual 10, 15 and 30 s between two health checks or readings of a monitor."""


def check_services(node: Node, plan: Plan) -> Iterator[Refusal]:
    """Check the embedding server, the model server, and that the embedding server was started first."""
    reader = node.reader(plan.reader_server) if plan.reader_server is not None else None
    if plan.reader_server is not None and reader is not None:
        yield from _reader(reader, plan.reader_server)
    # After the model server has loaded, since only then an embedder that was evicted from the GPU is noticed.
    embedder = node.embedder(plan.embedder) if plan.embedder is not None else None
    if plan.embedder is not None and embedder is not None:
        yield from check_embedder(embedder, plan.embedder)
    if isinstance(embedder, Embedder) and isinstance(reader, ReaderServer):
        yield from _order(embedder, reader)


def check_exposed(node: Node, plan: Plan) -> Iterator[Refusal]:
    """Check that no backend in a container can reach a model server past the gateway, on the host's network."""
    if not any(_CONTAINED.search(backend) for backend in plan.run.backends):
        return
    for server in (plan.embedder, plan.reader_server):
        if server is not None and node.open_to_containers(server.url):
            yield refusal("server-exposed", f"{server.url} answers on every address of this machine")


def check_reach(node: Node, plan: Plan) -> Iterator[Refusal]:
    """Check that every reader with a URL is on this machine, where its process can be watched during the run."""
    for reader in plan.run.readers:
        if reader.spec.startswith(("http://", "https://")) and node.reach_of(reader.spec) == "elsewhere":
            yield refusal("reader-remote", f"reader {reader.spec} is not on this machine's loopback")


def check_quiet(node: Node, plan: Plan) -> Iterator[Refusal]:
    """Check that no other client uses the model server: SGLang's counters must not change while this program waits.

    A health check or a monitor would use the GPU during a measurement. Other servers have no such counters.
    """
    spec = plan.reader_server
    if spec is None or spec.kind != "sglang":
        return
    # The last request may be counted a moment after its reply.
    node.sleep(SETTLE_S)
    before = node.reader_counts(spec)
    if isinstance(before, Unknown):
        yield refusal("reader-asked", f"cannot be told: {before.unknown}")
        return
    node.sleep(QUIET_S)
    after = node.reader_counts(spec)
    if isinstance(after, Unknown):
        yield refusal("reader-asked", f"cannot be told: {after.unknown}")
        return
    changes = {name: count - before.get(name, 0.0) for name, count in after.items() if count != before.get(name, 0.0)}
    if changes:
        name = min(changes)
        yield refusal("reader-asked", f"{name} moved by {changes[name]:g} in {QUIET_S:g} s while nothing was asked")


def check_embedder(embedder: Embedder | Unknown, spec: EmbedderSpec) -> Iterator[Refusal]:
    """Check that the embedding model is loaded, entirely on the GPU, and fast when warm."""
    if isinstance(embedder, Unknown):
        yield refusal("embedder-unreachable", f"cannot be told: {embedder.unknown}")
        return
    if embedder.vram_bytes < embedder.size_bytes:
        yield refusal(
            "embedder-on-cpu",
            f"{embedder.model}: {embedder.vram_bytes} of {embedder.size_bytes} bytes are on the GPU, "
            "expected all of them",
        )
    if embedder.warm_s >= spec.warm_within_s:
        yield refusal(
            "embedder-cold",
            f"{embedder.model}: a warm embedding took {embedder.warm_s:.2f} s, "
            f"expected less than {spec.warm_within_s:g} s",
        )


def _reader(server: ReaderServer | Unknown, spec: ReaderServerSpec) -> Iterator[Refusal]:
    if isinstance(server, Unknown):
        yield refusal("reader-unreachable", f"cannot be told: {server.unknown}")
        return
    if server.kind != spec.kind:
        yield refusal("reader-flags", f"the server is {server.kind}, the plan names {spec.kind}")
    for flag, expected in sorted(spec.flags.items()):
        if server.details.get(flag) != expected:
            actual = server.details.get(flag, "not told")
            yield refusal("reader-flags", f"{flag} is {actual}, the plan says {expected}")
    if server.probe_failure:
        yield refusal("reader-probe", f"the sanity probe failed: {server.probe_failure}")


def _order(embedder: Embedder, reader: ReaderServer) -> Iterator[Refusal]:
    """Check that the embedding server was started before the model server."""
    first, second = embedder.started_at_unix, reader.started_at_unix
    for server, start in (("embedder", first), ("model server", second)):
        if isinstance(start, Unknown):
            yield refusal("order-unknown", f"when the {server} was started cannot be told: {start.unknown}")
            return
    if isinstance(first, DeclaredOrder) and isinstance(second, DeclaredOrder):
        if first.place >= second.place:
            yield refusal("embedder-late", "the embedder is not declared before the model server, expected before it")
    elif isinstance(first, float) and isinstance(second, float):
        if first >= second:
            yield refusal(
                "embedder-late",
                f"the embedder was started {first - second:.0f} s after the model server, expected before it",
            )
    else:
        yield refusal("order-unknown", "of one server the time of its start is known, of the other a declared place")
