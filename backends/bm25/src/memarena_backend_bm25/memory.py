"""Implements the backend bm25: keyword search over turns or sessions, which needs no model with default settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    Endpoint,
    Memory,
    ModelClient,
    ModelRole,
    Notice,
    PromptStyle,
    Query,
    SearchResult,
    failed_precondition,
    fit_ranked,
    invalid_argument,
    offered,
    prefix_of,
    unavailable,
)
from memarena_backend.endpoints import Purpose

from memarena_backend_bm25.namespace_index import NamespaceIndex
from memarena_backend_bm25.okapi import Floats
from memarena_backend_bm25.passages import Passage
from memarena_backend_bm25.searching import OPTIONS, VECTOR_OPTION, find, plan_of
from memarena_backend_bm25.settings import Settings
from memarena_backend_bm25.vectors import VectorStore, check_same_model, unit_rows

DEFAULTS = Settings()


class Bm25Memory(Memory):
    """Ranks the passages of a namespace by BM25Okapi and, if options ask for it, by models. Events are not indexed.

    ``data_dir`` is required if the settings turn vectors on.
    """

    def __init__(self, data_dir: Path | None = None, settings: Settings = DEFAULTS) -> None:
        self._settings = settings
        self._indexes: dict[str, NamespaceIndex] = {}
        self._client = ModelClient()
        self._store: VectorStore | None = None
        if settings.vectors:
            assert data_dir is not None, "vectors are kept in a folder"
            self._store = VectorStore(data_dir)

    def describe(self) -> Description:
        options = OPTIONS if self._store is None else (*OPTIONS, VECTOR_OPTION)
        return Description(
            name="bm25",
            version=version("memarena-backend-bm25"),
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE, Capability.FORGET}),
            options=options,
            prompt_style=PromptStyle.JSON_CONTEXT,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        index = self._index_of(namespace)
        passages = index.passages_of_days((day,))
        if self._store is not None:
            self._embed_new(self._store, namespace, [passage.text for passage in passages], call)
        self._add(namespace, index, (day,), passages)
        return ()

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        index = self._index_of(namespace)
        all_days = tuple(days)
        self._add(namespace, index, all_days, index.passages_of_days(all_days))

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        models = _Models(self._client, self._settings, call, "model_access")
        items, notices = find(self._indexes[namespace], query, plan_of(query), models)
        fitted = fit_ranked(items, None, query.max_context_tokens)
        return SearchResult(fitted.items, (*notices, *fitted.notices)) if notices else fitted

    def unload(self, namespace: str) -> None:
        # Vectors stay: restore() has no access to a model that could compute them again.
        self._indexes.pop(namespace, None)

    def forget(self, namespace: str) -> None:
        self._indexes.pop(namespace, None)
        if self._store is not None:
            self._store.remove(namespace)

    def close(self) -> None:
        self._client.close()
        if self._store is not None:
            self._store.close()

    def _index_of(self, namespace: str) -> NamespaceIndex:
        return self._indexes.setdefault(namespace, NamespaceIndex(self._settings.passage))

    def _add(self, namespace: str, index: NamespaceIndex, days: Sequence[Day], passages: Sequence[Passage]) -> None:
        index.add(days, passages)
        if self._store is not None:
            index.model = self._store.model_of(namespace)
            index.matrix = self._store.matrix(namespace, [passage.text for passage in index.passages])

    def _embed_new(self, store: VectorStore, namespace: str, texts: Sequence[str], call: Call) -> None:
        """Embed the texts that have no vector yet, and store the vectors."""
        missing = store.missing(namespace, texts)
        if not missing:
            return
        models = _Models(self._client, self._settings, call, "header.model_access")
        embedder = models.embedder()
        check_same_model(store.model_of(namespace), embedder.model)
        store.add(namespace, embedder.model, missing, unit_rows(models.embed(embedder, missing, "passage")))


@dataclass(frozen=True, slots=True)
class _Models:
    """The models that one call may use: those of the settings, else those that the gateway offers."""

    client: ModelClient
    settings: Settings
    call: Call
    field: str
    """Path of the request's field for model access, named in errors."""

    def embedder(self) -> Endpoint:
        """Return the embedding model. Raises CallError if there is none."""
        return self.settings.embedding or self._offered(ModelRole.EMBEDDER, "embedding", "BM25_EMBEDDING_URL")

    def _offered(self, role: ModelRole, kind: str, variable: str) -> Endpoint:
        """Return the gateway's model for a role.

        Raises CallError: INVALID_ARGUMENT if the call has no model access (MOD-6), FAILED_PRECONDITION if its access
        has no model of the role.
        """
        endpoint = offered(self.call.models, role)
        if endpoint is not None:
            return endpoint
        message = f"no {kind} model: the call offers none, and {variable} is not set"
        if self.call.models is None:
            raise invalid_argument(self.field, message)
        raise failed_precondition(message)

    def embed(self, embedder: Endpoint, texts: Sequence[str], purpose: Purpose) -> list[list[float]]:
        prefix = prefix_of(embedder.model, purpose) if self.settings.embedding_prefixes else ""
        return self.client.embed(embedder, [prefix + text for text in texts], self.call)

    def similarities(self, index: NamespaceIndex, question: str) -> Floats:
        if index.matrix is None or not len(index.matrix):
            return np.zeros(len(index.passages))
        embedder = self.embedder()
        check_same_model(index.model, embedder.model)
        (vector,) = unit_rows(self.embed(embedder, [question], "query"))
        if len(vector) != index.matrix.shape[1]:
            raise unavailable(
                f"the embedding model {embedder.model} gave {len(vector)} numbers for the question and "
                f"{index.matrix.shape[1]} for the passages"
            )
        cosines: Floats = (index.matrix @ vector).astype(np.float64)
        return cosines

    def relevance(self, question: str, texts: Sequence[str]) -> list[float]:
        reranker = self.settings.rerank or self._offered(ModelRole.RERANKER, "rerank", "BM25_RERANK_URL")
        return self.client.rank(reranker, question, texts, self.call)
