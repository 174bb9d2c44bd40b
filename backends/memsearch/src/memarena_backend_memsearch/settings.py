"""Reads the operator's settings of memsearch from environment variables: embedding model, Milvus, size of chunks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from memarena_backend import ServeError


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the backend, each with its variable."""

    embedding_url: str | None = None
    """MEMSEARCH_EMBEDDING_URL: base URL of an OpenAI-compatible API, for example ``http://ollama:11434/v1``."""
    embedding_model: str | None = None
    """MEMSEARCH_EMBEDDING_MODEL: required with the URL, for example ``nomic-embed-text``."""
    embedding_api_key: str | None = None
    """MEMSEARCH_EMBEDDING_API_KEY."""
    embedding_prefixes: bool = True
    """MEMSEARCH_EMBEDDING_PREFIXES=off: send texts without the prefix that the card of their model asks for."""
    milvus_uri: str | None = None
    """MEMSEARCH_MILVUS_URI: a Milvus server; without it Milvus Lite in the data folder."""
    milvus_token: str | None = None
    """MEMSEARCH_MILVUS_TOKEN."""
    max_chunk_chars: int = 1_500
    """MEMSEARCH_MAX_CHUNK_CHARS: a session longer than this is cut between turns (the library's default)."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment. Raises ServeError that names the bad variable."""

    def text(name: str) -> str | None:
        return environment.get(f"MEMSEARCH_{name}") or None

    url, model = text("EMBEDDING_URL"), text("EMBEDDING_MODEL")
    if (url is None) != (model is None):
        raise ServeError("MEMSEARCH_EMBEDDING_URL and MEMSEARCH_EMBEDDING_MODEL go together")
    for name, value in (("EMBEDDING_URL", url), ("MILVUS_URI", text("MILVUS_URI"))):
        if value is not None and not value.startswith(("http://", "https://")):
            raise ServeError(f"MEMSEARCH_{name}: expected an http(s) URL, got {value!r}")
    prefixes = text("EMBEDDING_PREFIXES") or "on"
    if prefixes not in {"on", "off"}:
        raise ServeError(f"MEMSEARCH_EMBEDDING_PREFIXES: expected on or off, got {prefixes!r}")
    size = text("MAX_CHUNK_CHARS") or "1500"
    if not (size.isascii() and size.isdigit() and 200 <= int(size) <= 8_000):
        raise ServeError(f"MEMSEARCH_MAX_CHUNK_CHARS: expected 200 to 8000, got {size!r}")
    return Settings(
        embedding_url=url,
        embedding_model=model,
        embedding_api_key=text("EMBEDDING_API_KEY"),
        embedding_prefixes=prefixes == "on",
        milvus_uri=text("MILVUS_URI"),
        milvus_token=text("MILVUS_TOKEN"),
        max_chunk_chars=int(size),
    )
