"""Reads the settings from environment variables: the size of episodes, and the calls of the extracting model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from memarena_backend import ServeError

EpisodeOf = Literal["session", "turn"]
ResponseFormat = Literal["json_schema", "json_object", "none"]
T = TypeVar("T", bound=str)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server, each named by its variable."""

    episode: EpisodeOf = "session"
    """MEMARENA_GRAPHITI_EPISODE: the unit that Graphiti ingests. Every episode costs several model calls."""
    episode_bytes: int = 6_000
    """MEMARENA_GRAPHITI_EPISODE_BYTES: a longer session is ingested as several episodes, cut between turns."""
    previous_episodes: int = 1
    """MEMARENA_GRAPHITI_PREVIOUS_EPISODES: number of earlier episodes in the model's prompt with the current one."""
    reply_tokens: int = 2_048
    """MEMARENA_GRAPHITI_REPLY_TOKENS: limit of a reply. A longer reply is cut off and lost."""
    response_format: ResponseFormat = "json_schema"
    """MEMARENA_GRAPHITI_RESPONSE_FORMAT: the format that the model's server is asked to enforce."""
    buffer_pool_mb: int = 256
    """MEMARENA_GRAPHITI_BUFFER_POOL_MB: limit of the memory for Kuzu's pages of a namespace, in MiB."""
    open_graphs: int = 16
    """MEMARENA_GRAPHITI_OPEN_GRAPHS: limit of namespaces whose graphs are open, some 70 MB each; see README."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the environment. Raises ServeError naming the variable."""

    def text(name: str, default: object) -> str:
        return environment.get(f"MEMARENA_GRAPHITI_{name}") or str(default)

    default = Settings()
    return Settings(
        episode=_one_of("EPISODE", text("EPISODE", default.episode), get_args(EpisodeOf)),
        episode_bytes=_whole("EPISODE_BYTES", text("EPISODE_BYTES", default.episode_bytes), 500, 100_000),
        previous_episodes=_whole("PREVIOUS_EPISODES", text("PREVIOUS_EPISODES", default.previous_episodes), 0, 20),
        reply_tokens=_whole("REPLY_TOKENS", text("REPLY_TOKENS", default.reply_tokens), 128, 65_536),
        response_format=_one_of(
            "RESPONSE_FORMAT", text("RESPONSE_FORMAT", default.response_format), get_args(ResponseFormat)
        ),
        buffer_pool_mb=_whole("BUFFER_POOL_MB", text("BUFFER_POOL_MB", default.buffer_pool_mb), 64, 65_536),
        open_graphs=_whole("OPEN_GRAPHS", text("OPEN_GRAPHS", default.open_graphs), 1, 4_096),
    )


def _one_of(name: str, value: str, choices: tuple[T, ...]) -> T:
    for choice in choices:
        if value == choice:
            return choice
    raise ServeError(f"MEMARENA_GRAPHITI_{name}: expected {' or '.join(choices)}, got {value!r}")


def _whole(name: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise ServeError(f"MEMARENA_GRAPHITI_{name}: expected a whole number from {least} to {most}, got {value!r}")
    return int(value)
