"""Defines how to reach a model endpoint: address, model, key, limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EndpointConfig:
    """The address of the model and its request limits. ``timeout_s`` is for one of the ``attempts`` at a request."""

    url: str
    model: str
    api_key: str | None = None
    concurrency: int = 8
    temperature: float = 0.8
    timeout_s: float = 180.0
    attempts: int = 6
    longest_wait_s: float = 60.0
