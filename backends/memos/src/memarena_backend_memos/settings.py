"""Reads the operator's settings of memos from environment variables: the size of prompts and of replies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from memarena_backend import ServeError

_PREFIX = "MEMARENA_MEMOS_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the backend, each with its variable."""

    part_bytes: int = 12_000
    """MEMARENA_MEMOS_PART_BYTES: a longer session is extracted in parts; less if the model's window is small."""
    reply_tokens: int = 2_048
    """MEMARENA_MEMOS_REPLY_TOKENS: most tokens of the model's reply for one part."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment. Raises ServeError that names the bad variable."""
    return Settings(
        part_bytes=_whole(environment, "PART_BYTES", Settings().part_bytes, 1_000, 1_000_000),
        reply_tokens=_whole(environment, "REPLY_TOKENS", Settings().reply_tokens, 64, 100_000),
    )


def _whole(environment: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    value = environment.get(_PREFIX + name) or str(default)
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise ServeError(f"{_PREFIX}{name}: expected a whole number from {least} to {most}, got {value!r}")
    return int(value)
