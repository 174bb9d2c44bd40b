"""Commits to a fresh world before it can be known: plan, backends, node, the world's settings and a future round."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from memarena.execution.backends.manifests import choose_backend
from memarena.log.base import Record
from pydantic import Field, ValidationError

from memarena_spark import announcing
from memarena_spark.backends import code_of
from memarena_spark.errors import FileError, SparkError
from memarena_spark.files import canonical_json, sha256, write_whole
from memarena_spark.fresh.beacons import NETWORKS, Beacon, is_genuine, read_beacon
from memarena_spark.locking import now
from memarena_spark.node import Node
from memarena_spark.plans import LoadedPlan

COMMITMENT = "commitment.json"
BEACON = "beacon.json"
_DOMAIN = b"memarena fresh world 1\0"

_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Commitment(Record):
    """Made before the beacon's round. Its SHA-256 is a line of the node's announcements."""

    commitment_version: Literal[1] = 1
    at: str
    node: str
    plan_sha256: _Sha256
    """Of the plan's text and its profile's, as in an announcement."""
    backends: Mapping[str, str]
    """Digest of the code by the name in the plan."""
    network: str
    """Of the beacon."""
    round: Annotated[int, Field(ge=1)]
    preset: str
    """Size of the world, by ``masim``'s name."""
    pack_sha256: _Sha256 | None = None
    """Of a pack that is published later; None: the public one."""

    @property
    def sha256(self) -> str:
        """What is announced."""
        return sha256(canonical_json(self))


class FreshWorld(Record):
    """A commitment, and the beacon's value that came after it."""

    commitment: Commitment
    beacon: Beacon

    @property
    def seed(self) -> int:
        """Of the world: the first 6 bytes of a SHA-256 over commitment and randomness."""
        inputs = bytes.fromhex(self.commitment.sha256) + self.beacon.randomness
        return int.from_bytes(hashlib.sha256(_DOMAIN + inputs).digest()[:6], "big")


def commit(
    folder: Path,
    plan: LoadedPlan,
    node: Node,
    announcements: Path,
    network: str,
    at: datetime,
    preset: str,
    pack_sha256: str | None = None,
) -> Commitment:
    """Write a commitment into the new folder ``folder``, and announce it.

    ``at`` is the earliest time of the beacon's round. Raises SparkError.
    """
    if network not in NETWORKS:
        raise SparkError(f"--network {network}: expected one of {', '.join(NETWORKS)}")
    if at <= datetime.now(UTC):
        raise SparkError(f"--at {at.isoformat()}: expected a time to come: a value that is known is no beacon")
    if folder.exists():
        raise SparkError(f"--out {folder}: is there already; a commitment is never overwritten")
    try:
        commitment = Commitment(
            at=now(),
            node=node.identity().name,
            plan_sha256=announcing.plan_sha256(plan.plan_text, plan.profile_text),
            backends={name: code_of(choose_backend(name), node).digest for name in plan.plan.run.backends},
            network=network,
            round=NETWORKS[network].first_round_after(at),
            preset=preset,
            pack_sha256=pack_sha256,
        )
    except ValidationError as error:
        raise SparkError(f"--pack-sha256 {pack_sha256}: expected 64 hexadecimal digits") from error
    write_whole(folder / COMMITMENT, canonical_json(commitment))
    announcing.announce_commitment(announcements, commitment.node, commitment.sha256)
    return commitment


def read_commitment(path: Path, name: str | None = None) -> Commitment:
    """Read a commitment. Raises :class:`~memarena_spark.errors.FileError` with ``name`` or the path."""
    source = name or str(path)
    try:
        content = path.read_bytes()
        commitment = Commitment.model_validate_json(content)
    except OSError as error:
        raise FileError(source, f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise FileError(source, f"is not a commitment: {' '.join(str(error).split())[:200]}") from error
    if canonical_json(commitment) != content:
        raise FileError(source, "not as this program writes it")
    return commitment


def read_fresh(folder: Path, name: str | None = None) -> FreshWorld | None:
    """Read commitment and beacon of a folder; return None if there is no such folder. Raises FileError."""
    if not folder.exists():
        return None
    source = name or f"{folder}/"
    commitment = read_commitment(folder / COMMITMENT, f"{source}{COMMITMENT}")
    return FreshWorld(commitment=commitment, beacon=read_beacon(folder / BEACON, f"{source}{BEACON}"))


def appears_at(commitment: Commitment) -> datetime:
    """Return the time of its round. Raises KeyError for an unknown network, which :func:`beacon_faults` reports."""
    return NETWORKS[commitment.network].time_of(commitment.round)


def beacon_faults(fresh: FreshWorld) -> Iterator[str]:
    """Yield the reason if a beacon's value is not the one that its commitment names."""
    commitment, beacon = fresh.commitment, fresh.beacon
    network = NETWORKS.get(commitment.network)
    if network is None:
        yield f"network {commitment.network} is not known; expected one of {', '.join(NETWORKS)}"
    elif beacon.round != commitment.round:
        yield f"the beacon's round is {beacon.round}, the commitment waits for {commitment.round}"
    elif appears_at(commitment) <= datetime.fromisoformat(commitment.at):
        yield f"round {beacon.round} appeared at {appears_at(commitment)}, before the commitment: {commitment.at}"
    elif not is_genuine(beacon, network):
        yield f"the signature is not {commitment.network}'s of round {beacon.round}"
