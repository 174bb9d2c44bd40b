"""Holds the memories of one namespace in LangGraph's in-memory store, and saves them as two files in a folder.

The store embeds in its own threads, some of which lose their errors, and it knows nothing of calls. So the embedding
model that it gets here uses the embedder of the current call, and keeps the first error.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from langchain_core.embeddings import Embeddings  # type: ignore[import-not-found]
from langgraph.store.memory import InMemoryStore  # type: ignore[import-not-found]
from memarena_backend import Call, CallError
from memarena_backend.embedders import Embedder

NAMESPACE = ("memories",)
FACTS_FILE, VECTORS_FILE = "memories.json", "vectors.npy"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a memory: the sessions that wrote or rewrote it, oldest first, and the time of the last one."""

    session_ids: tuple[str, ...]
    time: str
    """Time of the last session, RFC 3339."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory as the result of a search."""

    text: str
    score: float
    """Cosine similarity to the question."""
    source: Source


class Memories:
    """The store of one namespace. A single day at a time may change it; searches may overlap."""

    def __init__(self, folder: Path | None = None) -> None:
        """Make an empty store, or load the one that :meth:`save` wrote to ``folder``."""
        self._vectors = _Vectors()
        index = {"dims": 0, "embed": self._vectors, "fields": ["content.content"]}
        self.store = InMemoryStore(index=index)
        self.sources: dict[str, Source] = {}
        """Source of each memory by its key."""
        self.model: str | None = None
        """Name of the model that made the vectors; None as long as there are none."""
        self._asking = threading.Lock()
        if folder is not None and (folder / FACTS_FILE).is_file():
            self._load(folder)

    def contents(self) -> dict[str, Mapping[str, Any]]:
        """Return the value of each memory, as LangMem stores it, by its key."""
        items = self.store.search(NAMESPACE, limit=sys.maxsize)
        return {item.key: item.value for item in items}

    def embed_with(self, embedder: Embedder | None, call: Call) -> None:
        """Set the embedder and the call for the store to use; with None it may not embed anything."""
        self._vectors.work = None if embedder is None else (embedder, call)
        if embedder is not None:
            self.model = embedder.model

    def check_embedded(self) -> None:
        """Raise the CallError of an embedding that failed, if any; the library may have swallowed it."""
        if self._vectors.failed is not None:
            raise self._vectors.failed

    def search(self, text: str, vector: list[float], count: int) -> list[Fact]:
        """Return the ``count`` memories most similar to a question; ``vector`` is the question's."""
        with self._asking:
            self._vectors.query_vector = {text: vector}
            results = self.store.search(NAMESPACE, query=text, limit=count)
            self._vectors.query_vector = {}
        facts = [Fact(_text_of(item.value), item.score or 0.0, self.sources[item.key]) for item in results]
        return [fact for fact in facts if fact.text.strip()]

    def save(self, folder: Path) -> None:
        """Write memories, sources and vectors to an existing folder."""
        contents = self.contents()
        texts = list(dict.fromkeys(map(_text_of, contents.values())))
        rows = [self._vectors.known[text] for text in texts]
        memories = [{"key": key, "value": value, **asdict(self.sources[key])} for key, value in contents.items()]
        document = {"version": 1, "model": self.model if memories else None, "memories": memories, "texts": texts}
        (folder / FACTS_FILE).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        with (folder / VECTORS_FILE).open("wb") as file:
            np.save(file, np.array(rows, dtype=np.float32), allow_pickle=False)
            os.fsync(file.fileno())

    def _load(self, folder: Path) -> None:
        document = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        rows = np.load(folder / VECTORS_FILE, allow_pickle=False)
        self.model = document["model"]
        self._vectors.known = dict(zip(document["texts"], rows.tolist(), strict=True))
        for memory in document["memories"]:
            self.store.put(NAMESPACE, memory["key"], memory["value"])
            self.sources[memory["key"]] = Source(tuple(memory["session_ids"]), memory["time"])


class _Vectors(Embeddings):  # type: ignore[misc]
    """The embedding model that the store gets: the embedder of the current call, with a cache."""

    def __init__(self) -> None:
        self.known: dict[str, list[float]] = {}
        """Vectors of memories by their text."""
        self.query_vector: dict[str, list[float]] = {}
        """Vector of the current question, by its text."""
        self.work: tuple[Embedder, Call] | None = None
        self.failed: CallError | None = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        missing = [text for text in dict.fromkeys(texts) if text not in self.known]
        if missing:
            embedder, call = self._at_work()
            try:
                self.known |= zip(missing, embedder.embed(missing, "passage", call), strict=True)
            except CallError as error:
                self.failed = error
                raise
        return [self.known[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        # During an ingest the library searches twice for the last message of a session, so its vector is kept.
        if text not in self.query_vector:
            embedder, call = self._at_work()
            try:
                self.query_vector = {text: embedder.embed([text], "query", call)[0]}
            except CallError as error:
                self.failed = error
                raise
        return self.query_vector[text]

    def _at_work(self) -> tuple[Embedder, Call]:
        assert self.work is not None, "vectors are made for a day, and were given with a question or a file"
        return self.work


def _text_of(value: Mapping[str, Any]) -> str:
    content = value["content"]
    return cast(str, content["content"]) if isinstance(content.get("content"), str) else ""
