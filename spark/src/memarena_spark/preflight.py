"""Checks all conditions that must hold before a run at once, so that an operator sees all reasons for a refusal.

Fails closed: a fact that a profile or plan needs and that is unknown is itself a refusal.
"""

from __future__ import annotations

from pathlib import Path

from memarena.log.base import Record

from memarena_spark.checks.canaries import check_canary
from memarena_spark.checks.gpu import check_gpu
from memarena_spark.checks.host import check_conditions, check_identity, check_rest, check_room, check_versions
from memarena_spark.checks.services import check_exposed, check_quiet, check_reach, check_services
from memarena_spark.errors import Refusal
from memarena_spark.facts import CanaryResult, Embedder, Gpu, Identity, Image, Memory, ReaderServer, Unknown
from memarena_spark.node import Node
from memarena_spark.plans import LoadedPlan, Plan

PACKAGES = (
    "memarena",
    "memarena-spark",
    "memarena-answering",
    "memarena-proto",
    "numpy",
    "grpcio",
    "xllamacpp",
    "torch",
)
"""Packages whose versions are recorded even if the plan does not pin them."""


class NodeState(Record):
    """State of the node before a run, which becomes part of the bundle. None: the plan names no such server."""

    identity: Identity
    gpu: Gpu | Unknown
    memory: Memory | Unknown
    clock_synchronised: bool | Unknown
    on_battery: bool | Unknown
    governors: tuple[str, ...] | Unknown
    temperatures_c: dict[str, float] | Unknown
    packages: dict[str, str | None]
    images: dict[str, Image | Unknown]
    embedder: Embedder | Unknown | None
    reader_server: ReaderServer | Unknown | None


class Preflight(Record):
    """The result of preflight: the node's state, the compute canary, and all reasons not to begin."""

    state: NodeState
    canary: CanaryResult | Unknown
    refusals: tuple[Refusal, ...]

    @property
    def passed(self) -> bool:
        """Whether a run may begin."""
        return not self.refusals


def look(node: Node, plan: Plan) -> NodeState:
    """Return the present state of the node, without checks."""
    names = sorted({*PACKAGES, *plan.pins.packages})
    containers = {spec.container for spec in (plan.embedder, plan.reader_server) if spec and spec.container}
    return NodeState(
        identity=node.identity(),
        gpu=node.gpu(),
        memory=node.memory(),
        clock_synchronised=node.clock_synchronised(),
        on_battery=node.on_battery(),
        governors=node.governors(),
        temperatures_c=node.temperatures(),
        packages=dict(node.packages(names)),
        images={name: node.image(name) for name in sorted({*plan.pins.images, *containers})},
        embedder=node.embedder(plan.embedder) if plan.embedder else None,
        reader_server=node.reader(plan.reader_server) if plan.reader_server else None,
    )


def preflight(node: Node, loaded: LoadedPlan, out: Path) -> Preflight:
    """Run all checks. The canary comes last, since it warms the machine."""
    plan, profile = loaded.plan, loaded.profile
    refusals = [
        *check_identity(node, profile),
        *check_gpu(node, plan, profile),
        *check_versions(node, plan),
        *check_room(node, profile, out),
        *check_rest(node, profile),
        *check_conditions(node, profile),
        *check_reach(node, plan),
        *check_services(node, plan),
        *check_exposed(node, plan),
        *check_quiet(node, plan),
    ]
    state = look(node, plan)
    canary = node.canary(profile.canary)
    refusals += check_canary(canary, profile.canary, plan.golden)
    return Preflight(state=state, canary=canary, refusals=tuple(refusals))


def still_well(node: Node, loaded: LoadedPlan) -> tuple[Refusal, ...]:
    """Return the checks that fail after a run: those of GPU, versions, servers, quiet and swap are repeated."""
    plan, profile = loaded.plan, loaded.profile
    return (
        *check_gpu(node, plan, profile),
        *check_versions(node, plan),
        *check_services(node, plan),
        *check_quiet(node, plan),
        *_swap(node, loaded),
    )


def _swap(node: Node, plan: LoadedPlan) -> tuple[Refusal, ...]:
    """Check only swap: memory may be short after a run, but must not have been swapped out."""
    return tuple(r for r in check_room(node, plan.profile, Path()) if r.code == "swap")
