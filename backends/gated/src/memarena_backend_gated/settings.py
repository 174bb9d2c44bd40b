"""What an operator sets by environment variables: which memory is beneath, and what holds where a wish is unclear."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from memarena_backend import ServeError


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server, each named by its variable."""

    memory: str = "bm25"
    """GATED_MEMORY: a memory that is installed as a library, by name."""
    default: str = "careful"
    """GATED_UNCLEAR: careful withholds what is unclear from all but the owner, open shows it."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment. Raises ServeError naming the variable."""
    default = environment.get("GATED_UNCLEAR") or "careful"
    if default not in ("careful", "open"):
        raise ServeError(f"GATED_UNCLEAR: expected careful or open, got {default!r}")
    return Settings(environment.get("GATED_MEMORY") or "bm25", default)
