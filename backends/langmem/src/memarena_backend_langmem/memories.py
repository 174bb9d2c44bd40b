"""What one namespace remembers: LangGraph's in-memory store, kept in two files of a folder.

The store makes vectors in threads of its own, some of which lose their errors, and knows no calls. So what stands
in an embedding model's place asks the embedder of the call at hand, and remembers what failed.
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
    """Where a memory comes from: the sessions that wrote or rewrote it, oldest first, and when the last was held."""

    session_ids: tuple[str, ...]
    time: str
    """RFC 3339."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory that was found."""

    text: str
    score: float
    """Cosine similarity."""
    source: Source


class Memories:
    """The store of one namespace. One day at a time may change it; searches may run beside each other."""

    def __init__(self, folder: Path | None = None) -> None:
        """Empty, or as :meth:`save` left it in ``folder``."""
        self._vectors = _Vectors()
        index = {"dims": 0, "embed": self._vectors, "fields": ["content.content"]}
        self.store = InMemoryStore(index=index)
        self.sources: dict[str, Source] = {}
        """By the key of each memory."""
        self.model: str | None = None
        """What made the vectors; None as long as there are none."""
        self._asking = threading.Lock()
        if folder is not None and (folder / FACTS_FILE).is_file():
            self._load(folder)

    def contents(self) -> dict[str, Mapping[str, Any]]:
        """The value of every memory by its key, as LangMem stores it."""
        items = self.store.search(NAMESPACE, limit=sys.maxsize)
        return {item.key: item.value for item in items}

    def embed_with(self, embedder: Embedder | None, call: Call) -> None:
        """What the store is to embed with from now on; with None it may not embed anything."""
        self._vectors.work = None if embedder is None else (embedder, call)
        if embedder is not None:
            self.model = embedder.model

    def check_embedded(self) -> None:
        """Raise the CallError of an embedding that failed, which the library may have lost."""
        if self._vectors.failed is not None:
            raise self._vectors.failed

    def search(self, text: str, vector: list[float], count: int) -> list[Fact]:
        """The memories most similar to a question; ``vector`` is the question's."""
        with self._asking:
            self._vectors.query_vector = {text: vector}
            results = self.store.search(NAMESPACE, query=text, limit=count)
            self._vectors.query_vector = {}
        facts = [Fact(_text_of(item.value), item.score or 0.0, self.sources[item.key]) for item in results]
        return [fact for fact in facts if fact.text.strip()]

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        contents = self.contents()
        texts = list(dict.fromkeys(map(_text_of, contents.values())))
        rows = [self._vectors.known[text] for text in texts]
        memories = [{"key": key, "value": value, **asdict(self.sources[key])} for key, value in contents.items()]
        whole = {"version": 1, "model": self.model if memories else None, "memories": memories, "texts": texts}
        (folder / FACTS_FILE).write_text(json.dumps(whole, ensure_ascii=False), encoding="utf-8")
        with (folder / VECTORS_FILE).open("wb") as file:
            np.save(file, np.array(rows, dtype=np.float32), allow_pickle=False)
            os.fsync(file.fileno())

    def _load(self, folder: Path) -> None:
        whole = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        rows = np.load(folder / VECTORS_FILE, allow_pickle=False)
        self.model = whole["model"]
        self._vectors.known = dict(zip(whole["texts"], rows.tolist(), strict=True))
        for each in whole["memories"]:
            self.store.put(NAMESPACE, each["key"], each["value"])
            self.sources[each["key"]] = Source(tuple(each["session_ids"]), each["time"])


class _Vectors(Embeddings):  # type: ignore[misc]
    """What the store takes for its embedding model."""

    def __init__(self) -> None:
        self.known: dict[str, list[float]] = {}
        """Vectors of memories by their text."""
        self.query_vector: dict[str, list[float]] = {}
        """Vector of the question that is being searched for."""
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
        # While a day is taken in the library searches for what is said last in a session, twice over.
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
