"""Reads the operator's settings of bm25 from environment variables: unit of search, vectors, and own models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memarena_backend import Endpoint, ServeError

PassageKind = Literal["turn", "session"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How days are indexed, and models that replace those of the gateway."""

    passage: PassageKind = "turn"
    """BM25_PASSAGE: the unit of search, a turn or a whole session."""
    vectors: bool = False
    """BM25_VECTORS=on: embed every passage while its day is ingested, for searches by vector."""
    embedding: Endpoint | None = None
    """BM25_EMBEDDING_URL, BM25_EMBEDDING_MODEL, BM25_EMBEDDING_API_KEY; without them the gateway's embedder."""
    embedding_prefixes: bool = True
    """BM25_EMBEDDING_PREFIXES=off: send texts without the prefix that the card of their model asks for."""
    rerank: Endpoint | None = None
    """BM25_RERANK_URL, BM25_RERANK_MODEL, BM25_RERANK_API_KEY; without them the gateway's reranker."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment. Raises ServeError that names the bad variable."""
    passage = _choice(environment, "BM25_PASSAGE", ("turn", "session"))
    return Settings(
        passage="session" if passage == "session" else "turn",
        vectors=_choice(environment, "BM25_VECTORS", ("off", "on")) == "on",
        embedding=_endpoint(environment, "BM25_EMBEDDING"),
        embedding_prefixes=_choice(environment, "BM25_EMBEDDING_PREFIXES", ("on", "off")) == "on",
        rerank=_endpoint(environment, "BM25_RERANK"),
    )


def _choice(environment: Mapping[str, str], name: str, choices: tuple[str, str]) -> str:
    value = environment.get(name) or choices[0]
    if value not in choices:
        raise ServeError(f"{name}: expected {' or '.join(choices)}, got {value!r}")
    return value


def _endpoint(environment: Mapping[str, str], name: str) -> Endpoint | None:
    url, model = environment.get(f"{name}_URL") or "", environment.get(f"{name}_MODEL") or ""
    if bool(url) != bool(model):
        raise ServeError(f"{name}_URL and {name}_MODEL go together")
    if not url:
        return None
    if not url.startswith(("http://", "https://")):
        raise ServeError(f"{name}_URL: expected an http(s) URL, got {url!r}")
    return Endpoint(url, model, environment.get(f"{name}_API_KEY") or "")
