"""Commits to a fresh world before it can be known: plan, backends, node, the world's settings and a future round.

A fresh world is a data set whose seed is unknown until everything else of a run is fixed. The seed follows from the
commitment and from a beacon: a public network (drand) that signs the number of each round at a known time, so that the
value of a future round cannot be known. So the makers of a backend cannot tune it to the world, and an operator cannot
choose a seed at which a backend does well. An operator can commit several times; the announcements show each time.
"""

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
"""Prefix of the bytes that are hashed to the seed, so that no hash made for another purpose equals it."""

_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Commitment(Record):
    """All that is fixed before the beacon's round. Its SHA-256 is announced in a line of the node's announcements."""

    commitment_version: Literal[1] = 1
    at: str
    """When the commitment was made, in UTC."""
    node: str
    plan_sha256: _Sha256
    """SHA-256 of the plan's text and its profile's text together, as in an announcement."""
    backends: Mapping[str, str]
    """Digest of each backend's code, by the backend's name in the plan."""
    network: str
    """Name of the beacon's network (``NETWORKS``)."""
    round: Annotated[int, Field(ge=1)]
    """Number of the round whose value the seed follows from. It appears after the ``not_before`` of :func:`commit`."""
    preset: str
    """Size of the world: the name of a preset of ``masim``."""
    pack_sha256: _Sha256 | None = None
    """SHA-256 of a pack (phrases and names) that is published after the round; None: the public pack."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the commitment in canonical form: the hash that is announced."""
        return sha256(canonical_json(self))


class FreshWorld(Record):
    """A commitment, and the beacon's value that came after it."""

    commitment: Commitment
    beacon: Beacon

    @property
    def seed(self) -> int:
        """Seed of the world: the first 6 bytes of a SHA-256 over the commitment's hash and the beacon's randomness."""
        inputs = bytes.fromhex(self.commitment.sha256) + self.beacon.randomness
        return int.from_bytes(hashlib.sha256(_DOMAIN + inputs).digest()[:6], "big")


def commit(
    folder: Path,
    plan: LoadedPlan,
    node: Node,
    announcements: Path,
    network: str,
    not_before: datetime,
    preset: str,
    pack_sha256: str | None = None,
) -> Commitment:
    """Write a commitment into the new folder ``folder``, and announce it.

    The round appears after ``not_before``; the commitment's own ``at`` is the current time. Raises SparkError.
    """
    if network not in NETWORKS:
        raise SparkError(f"--network {network}: expected one of {', '.join(NETWORKS)}")
    if not_before <= datetime.now(UTC):
        raise SparkError(f"--at {not_before.isoformat()}: expected a time to come: a value that is known is no beacon")
    if folder.exists():
        raise SparkError(f"--out {folder}: is there already; a commitment is never overwritten")
    try:
        commitment = Commitment(
            at=now(),
            node=node.identity().name,
            plan_sha256=announcing.plan_sha256(plan.plan_text, plan.profile_text),
            backends={name: code_of(choose_backend(name), node).digest for name in plan.plan.run.backends},
            network=network,
            round=NETWORKS[network].first_round_after(not_before),
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
    # In this order: the time of a round needs a known network, and checking the signature takes seconds.
    if network is None:
        yield f"network {commitment.network} is not known; expected one of {', '.join(NETWORKS)}"
    elif beacon.round != commitment.round:
        yield f"the beacon's round is {beacon.round}, the commitment waits for {commitment.round}"
    elif appears_at(commitment) <= datetime.fromisoformat(commitment.at):
        yield f"round {beacon.round} appeared at {appears_at(commitment)}, before the commitment: {commitment.at}"
    elif not is_genuine(beacon, network):
        yield f"the signature is not {commitment.network}'s of round {beacon.round}"
