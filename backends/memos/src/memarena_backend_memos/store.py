"""Stores the memories of one namespace in the library's embedded Qdrant, with a note on model and count next to it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memos.configs.vec_db import QdrantVecDBConfig  # type: ignore[import-not-found]
from memos.memories.textual.general import GeneralTextMemory  # type: ignore[import-not-found]
from memos.memories.textual.item import TextualMemoryItem, TextualMemoryMetadata  # type: ignore[import-not-found]
from memos.vec_dbs.item import VecDBItem  # type: ignore[import-not-found]
from memos.vec_dbs.qdrant import QdrantVecDB  # type: ignore[import-not-found]

from memarena_backend_memos.extracting import Draft
from memarena_backend_memos.models import CallEmbedder

_NOTE = "memories.json"
_FOLDER = "qdrant"
_COLLECTION = "memories"
_SCORE_DIGITS = 6
"""Decimals of a score; further ones differ between equal vectors, depending on their position in memory."""


class StoreFaultError(Exception):
    """The store does not hold all memories that were added."""


@dataclass(frozen=True, slots=True)
class Note:
    """The embedding model and dimension of the memories, and their number."""

    model: str
    dimension: int
    count: int


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory as the result of a search; ``score`` is its cosine similarity."""

    text: str
    score: float
    session_id: str
    said_at: str
    """Time of the conversation, RFC 3339."""
    number: int
    """Index of the memory in its namespace, in the order in which memories were added."""


class _Memories(GeneralTextMemory):  # type: ignore[misc]
    """The library's memory with this backend's embedder and store; its own constructor would make clients."""

    def __init__(self, embedder: CallEmbedder, vector_db: QdrantVecDB) -> None:
        self.embedder = embedder
        self.vector_db = vector_db


class Store:
    """The store in the folder of a day. Open a folder only once. Searches may overlap, :meth:`add` must run alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / _NOTE
        self._note = Note(**json.loads(path.read_bytes())) if path.is_file() else None
        self._db = None if self._note is None else _opened(folder, self._note.dimension)

    def close(self) -> None:
        """Close the files."""
        if self._db is not None:
            self._db.client.close()
            self._db = None

    def add(self, drafts: Sequence[Draft], embedder: CallEmbedder) -> None:
        """Embed and add memories. Raises CallError if the embedder fails, StoreFaultError if some were not added."""
        if not drafts:
            return
        vectors = embedder.embed([draft.text for draft in drafts])
        if self._note is None:
            # The library creates its collection for vectors of a fixed dimension, known from the first vectors.
            self._note = Note(embedder.model, len(vectors[0]), 0)
            self._db = _opened(self._folder, self._note.dimension)
        embedder.expect(self._note.model, self._note.dimension, vectors[0])
        before = self._note.count
        _Memories(embedder, self._db).add([_item(draft, before + n) for n, draft in enumerate(drafts)])
        assert self._db is not None
        after = int(self._db.count())
        if after != before + len(drafts):
            raise StoreFaultError(f"{len(drafts)} memories were added to {before}, and the store holds {after}")
        self._note = Note(self._note.model, self._note.dimension, after)
        (self._folder / _NOTE).write_text(json.dumps(asdict(self._note)), encoding="utf-8")

    def search(self, text: str, count: int, embedder: CallEmbedder) -> list[StoredMemory]:
        """Return at most ``count`` memories, most similar first; equal scores in the order of addition."""
        if self._note is None or self._db is None:
            return []
        (vector,) = embedder.embed([text])
        embedder.expect(self._note.model, self._note.dimension, vector)
        count = min(count, self._note.count)
        limit = count + 1
        while True:
            results = sorted(
                map(_stored_memory, self._db.search(vector, limit)), key=lambda each: (-each.score, each.number)
            )
            # The store breaks ties by position in memory, which a restart changes, so all tied memories are fetched.
            if len(results) < limit or results[count - 1].score != results[-1].score:
                return results[:count]
            limit *= 2


def _opened(folder: Path, dimension: int) -> QdrantVecDB:
    config = QdrantVecDBConfig(
        collection_name=_COLLECTION,
        vector_dimension=dimension,
        # Vectors have length 1. With cosine the embedded store normalises them in each search, and scores drift.
        distance_metric="dot",
        path=str(folder / _FOLDER),
    )
    return QdrantVecDB(config)


def _item(draft: Draft, number: int) -> TextualMemoryItem:
    """Return a draft as the library's item, with the time of the conversation instead of the machine's clock."""
    metadata = TextualMemoryMetadata(
        key=draft.key,
        source="conversation",
        tags=list(draft.tags),
        session_id=draft.session_id,
        updated_at=draft.said_at,
        info={"number": number},
    )
    return TextualMemoryItem(id=str(uuid.uuid4()), memory=draft.text, metadata=metadata)


def _stored_memory(item: VecDBItem) -> StoredMemory:
    payload: dict[str, Any] = item.payload
    metadata = payload["metadata"]
    return StoredMemory(
        text=payload["memory"],
        score=round(float(item.score), _SCORE_DIGITS),
        session_id=metadata["session_id"],
        said_at=metadata["updated_at"],
        number=int(metadata["info"]["number"]),
    )
