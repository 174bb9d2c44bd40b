"""Reads and verifies values of public randomness beacons, which appear at a known time; needs no network.

A drand network signs the number of a round at the round's time (https://docs.drand.love, "Cryptographic
specification"). Its randomness is the SHA-256 of the signature, so anyone who has the network's public key can verify
that a value belongs to the round. The seed of a fresh world follows from such a value (:mod:`.commitment`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from memarena.log.base import Record
from pydantic import ConfigDict, Field, ValidationError

from memarena_spark.errors import FileError

_SIGNATURE_BYTES = {"chained": 96, "unchained-g1": 48}
"""Bytes of a compressed point of G2, and of G1."""


@dataclass(frozen=True)
class Network:
    """A drand network with the fields of its ``/info``."""

    scheme: Literal["chained", "unchained-g1"]
    """``chained``: signs the round with the signature before it, on G2; ``unchained-g1``: the round alone, on G1."""
    public_key: str
    genesis_unix_s: int
    period_s: int

    def time_of(self, number: int) -> datetime:
        """Return the time at which a round appears."""
        return datetime.fromtimestamp(self.genesis_unix_s + (number - 1) * self.period_s, UTC)

    def first_round_after(self, moment: datetime) -> int:
        """Return the number of the first round that appears later than a moment."""
        # Round k + 1 appears after k whole periods, at the moment or before it, so that k + 2 is the first later round.
        return max(1, int(moment.timestamp() - self.genesis_unix_s) // self.period_s + 2)


NETWORKS: dict[str, Network] = {
    "quicknet": Network(
        "unchained-g1",
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc2"
        "2b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a",
        1692803367,
        3,
    ),
    "default": Network(
        "chained",
        "868f005eb8e6e4ca0a47c8a77ceaa5309a47978a7c71bc5cce96366b5d7a569937c529eeda66c7293784a9402801af31",
        1595431050,
        30,
    ),
}
"""Networks of the League of Entropy by drand's own names."""


class Beacon(Record):
    """The value of a round, as a network's ``/public/ROUND`` returns it. Other fields of the reply are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    round: Annotated[int, Field(ge=1)]
    signature: Annotated[str, Field(pattern=r"^([0-9a-f]{96}|[0-9a-f]{192})$")]
    previous_signature: Annotated[str, Field(pattern=r"^([0-9a-f]{192})?$")] = ""

    @property
    def randomness(self) -> bytes:
        """32 bytes that could not be known before the round's time."""
        return hashlib.sha256(bytes.fromhex(self.signature)).digest()


def read_beacon(path: Path, name: str | None = None) -> Beacon:
    """Read a beacon's value from JSON. Raises :class:`~memarena_spark.errors.FileError` with ``name`` or the path."""
    try:
        return Beacon.model_validate_json(path.read_bytes())
    except OSError as error:
        raise FileError(name or str(path), f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        reason = f"is not a beacon's value: {' '.join(str(error).split())[:200]}"
        raise FileError(name or str(path), reason) from error


def is_genuine(beacon: Beacon, network: Network) -> bool:
    """Whether the network signed this round. Takes one to two seconds."""
    number, signature = beacon.round.to_bytes(8, "big"), bytes.fromhex(beacon.signature)
    key = bytes.fromhex(network.public_key)
    if len(signature) != _SIGNATURE_BYTES[network.scheme]:
        # py-ecc ignores bytes in front of a point, which would change the randomness of a valid signature.
        return False
    from memarena_spark.fresh.bls import verify_on_g1, verify_on_g2  # noqa: PLC0415 (half a second to import)

    try:
        if network.scheme == "chained":
            message = hashlib.sha256(bytes.fromhex(beacon.previous_signature) + number).digest()
            return verify_on_g2(key, message, signature)
        return verify_on_g1(key, hashlib.sha256(number).digest(), signature)
    except ValueError:  # not a point of the curve
        return False
