"""Reads the operator's settings of mem0 from environment variables: the length of replies and of embedded texts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from memarena_backend import ServeError


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the backend, each with its variable."""

    extraction_tokens: int = 2_000
    """MEMARENA_MEM0_EXTRACTION_TOKENS: most tokens of a reply (the library's default)."""
    embedding_chars: int = 6_000
    """MEMARENA_MEM0_EMBEDDING_CHARS: characters of a text to embed; models refuse texts above their window."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment. Raises ServeError that names the bad variable."""
    return Settings(
        extraction_tokens=_whole(environment, "EXTRACTION_TOKENS", Settings().extraction_tokens, 1, 100_000),
        embedding_chars=_whole(environment, "EMBEDDING_CHARS", Settings().embedding_chars, 100, 1_000_000),
    )


def _whole(environment: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    value = environment.get(f"MEMARENA_MEM0_{name}") or str(default)
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise ServeError(f"MEMARENA_MEM0_{name}: expected a whole number from {least} to {most}, got {value!r}")
    return int(value)
