"""Reads the settings from environment variables: the memory beneath, and the decision if a wish is unclear."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memarena_backend import ServeError

_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:]+\]|[^\s:=\[\]/]+):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Remote:
    """The address and credentials of a backend."""

    address: str
    """Address as HOST:PORT."""
    token: str = field(default="", repr=False)
    tls_ca: bytes | None = field(default=None, repr=False)
    """Certificates of the trusted authorities in PEM; None: no TLS."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server, each named by its variable."""

    memory: str = "bm25"
    """GATED_MEMORY: a memory that is installed as a library, by name."""
    default: str = "careful"
    """GATED_UNCLEAR: careful withholds what is unclear from all but the owner, open shows it."""
    extraction: str = "rules"
    """GATED_EXTRACTION: who reads wishes at Ingest, rules or a model that the caller offers."""
    remote: Remote | None = None
    """GATED_ADDRESS, GATED_TOKEN, GATED_TLS_CA: a backend at HOST:PORT in place of a library."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the environment. Raises ServeError naming the variable."""
    default = environment.get("GATED_UNCLEAR") or "careful"
    if default not in ("careful", "open"):
        raise ServeError(f"GATED_UNCLEAR: expected careful or open, got {default!r}")
    memory, remote = environment.get("GATED_MEMORY"), _remote(environment)
    if memory and remote is not None:
        raise ServeError("GATED_ADDRESS: expected without GATED_MEMORY: one memory is beneath, a library or an address")
    extraction = environment.get("GATED_EXTRACTION") or "rules"
    if extraction not in ("rules", "model"):
        raise ServeError(f"GATED_EXTRACTION: expected rules or model, got {extraction!r}")
    return Settings(memory or "bm25", default, extraction, remote)


def _remote(environment: Mapping[str, str]) -> Remote | None:
    """Return the settings of a backend at an address; None without GATED_ADDRESS. Raises ServeError."""
    address, token, roots = (environment.get(f"GATED_{name}") or "" for name in ("ADDRESS", "TOKEN", "TLS_CA"))
    if not address:
        for name, value in (("GATED_TOKEN", token), ("GATED_TLS_CA", roots)):
            if value:
                raise ServeError(f"{name}: expected together with GATED_ADDRESS")
        return None
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match.group("port")) < 65536:
        raise ServeError(f"GATED_ADDRESS: expected HOST:PORT, got {address!r}")
    if not (token.isascii() and token.isprintable()):
        raise ServeError("GATED_TOKEN: expected printable ASCII")
    try:
        return Remote(address, token, Path(roots).read_bytes() if roots else None)
    except OSError as error:
        raise ServeError(f"GATED_TLS_CA: {roots}: {error.strerror}") from error
