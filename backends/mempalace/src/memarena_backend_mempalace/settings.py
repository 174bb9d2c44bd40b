"""Reads the operator's setting of mempalace from an environment variable: what embeds texts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from memarena_backend import ServeError

VARIABLE = "MEMARENA_MEMPALACE_EMBEDDER"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the backend."""

    only_in_process: bool = False
    """MEMARENA_MEMPALACE_EMBEDDER=process: never use the gateway's embedder, so that Forget is supported."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment. Raises ServeError that names the variable."""
    embedder = environment.get(VARIABLE) or "auto"
    if embedder not in {"auto", "process"}:
        raise ServeError(f"{VARIABLE}: expected auto or process, got {embedder!r}")
    return Settings(only_in_process=embedder == "process")
