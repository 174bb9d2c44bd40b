"""What an operator sets by environment variables: where vectors come from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from memarena_backend import ServeError

VARIABLE = "MEMARENA_MEMPALACE_EMBEDDER"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server."""

    only_in_process: bool = False
    """MEMARENA_MEMPALACE_EMBEDDER=process: never ask the gateway's embedder, and so be able to Forget."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment. Raises ServeError naming the variable."""
    embedder = environment.get(VARIABLE) or "auto"
    if embedder not in {"auto", "process"}:
        raise ServeError(f"{VARIABLE}: expected auto or process, got {embedder!r}")
    return Settings(only_in_process=embedder == "process")
