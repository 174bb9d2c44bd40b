"""Makes the opaque ids that a backend gets instead of the data set's ids.

A real id such as ``coun_0001`` names the family of a question, and a person's id would link two namespaces.
An id is a keyed hash (HMAC-SHA256) of namespace, kind and real id. Without the key it carries nothing: no name, no
order, no family; and the same person has another id in another namespace. The key is drawn per run and kept in the
manifest, so that a resumed run makes the same ids.
"""

from __future__ import annotations

import hmac
from enum import Enum

ID_LENGTH = 32
"""Characters of an id: 128 bits of the hash in hexadecimal."""


class IdKind(str, Enum):
    """The kind of object of an id. Two kinds never share ids."""

    NAMESPACE = "namespace"
    PARTICIPANT = "participant"
    SESSION = "session"
    TURN = "turn"
    EVENT = "event"
    QUERY = "query"
    BATCH = "batch"


def opaque_id(key: bytes, *parts: str) -> str:
    """Return the keyed hash of ``parts``, 32 hex digits. Parts are length-prefixed, so they cannot run together."""
    message = b"".join(len(raw := part.encode()).to_bytes(4, "big") + raw for part in parts)
    return hmac.digest(key, message, "sha256").hex()[:ID_LENGTH]


class NamespaceIds:
    """Translates ids of one namespace both ways; a hash has no inverse, so that real ids are stored when first used."""

    def __init__(self, key: bytes, cell_id: str, ego: str, attempt: int) -> None:
        self._key = key
        self.namespace = opaque_id(key, IdKind.NAMESPACE.value, cell_id, ego, str(attempt))
        self._real: dict[tuple[IdKind, str], str] = {}

    def make(self, kind: IdKind, real: str) -> str:
        """Return the opaque id for a real one."""
        token = opaque_id(self._key, kind.value, self.namespace, real)
        self._real[kind, token] = real
        return token

    def real(self, kind: IdKind, token: str) -> str | None:
        """Return the real id of an opaque one; None if it was never issued in this namespace."""
        return self._real.get((kind, token))
