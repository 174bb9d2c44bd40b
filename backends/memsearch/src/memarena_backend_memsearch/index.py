"""Indexes one namespace with MemSearch: its markdown files on disk, and its own collection in Milvus.

The markdown is the source of truth. MemSearch identifies a chunk by its file, lines and content, so repairing an index
reads each file once and embeds only missing chunks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import cast

from memarena_backend import failed_precondition
from memsearch import MemSearch  # type: ignore[import-untyped]
from pymilvus import MilvusException  # type: ignore[import-untyped]

from memarena_backend_memsearch import embedding
from memarena_backend_memsearch.lite import MilvusLite
from memarena_backend_memsearch.markdown import DayFile, to_json

NOTE_NAME = "index.json"
QUERY_LIMIT_CHARS = 8_192
"""Characters of a question that are searched for. Milvus refuses texts above 65,535 bytes, which no question needs."""


@dataclass(frozen=True, slots=True)
class Milvus:
    """The database of the collections. ``lite`` is the engine started by this process, None if a server is used."""

    uri: str
    token: str | None
    lite: MilvusLite | None

    def ensure(self) -> int:
        """Start the engine unless it runs; return how often it was started, 0 for a server.

        Raises CallError UNAVAILABLE if it cannot be started.
        """
        return self.lite.ensure() if self.lite else 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A result of a search: lines ``start_line`` to ``end_line`` of the file ``name``."""

    name: str
    text: str
    heading: str
    start_line: int
    end_line: int
    score: float


@dataclass(frozen=True, slots=True)
class IndexNote:
    """The settings of an index, stored next to its files, since vectors of different models cannot be mixed."""

    model: str
    dimension: int
    max_chunk_chars: int


def folder_of(data_dir: Path, namespace: str) -> Path:
    """Return the folder of a namespace, named by a hash, as ids are opaque and may contain any character."""
    return data_dir / "memory" / hashlib.sha256(namespace.encode()).hexdigest()[:32]


def read_note(folder: Path) -> IndexNote | None:
    """Return the settings of a namespace's index; None if there is no index, or its note is damaged."""
    try:
        return IndexNote(**json.loads((folder / NOTE_NAME).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


class NamespaceIndex:
    """The index of one namespace. Call its methods within :func:`embedding.embed_with`.

    They raise CallError if embedding fails, and MilvusException if the database fails.
    """

    def __init__(self, folder: Path, milvus: Milvus, note: IndexNote) -> None:
        self.note = note
        self._folder = folder
        self._files: dict[str, DayFile] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if read_note(folder) != note:
            _write(folder / NOTE_NAME, json.dumps(asdict(note)))
        self._milvus = milvus
        self.generation = milvus.ensure()
        self._library = self._open()

    @property
    def is_empty(self) -> bool:
        """Whether no file has a turn."""
        return not any(file.turns for file in self._files.values())

    def add(self, file: DayFile) -> None:
        """Write a day's file and index it. On return its chunks are searchable."""
        path = self._folder / file.name
        if not (path.is_file() and path.read_text(encoding="utf-8") == file.text):
            _write(path, file.text)
        _write(path.with_suffix(".lines.json"), to_json(file))
        asyncio.run(self._library.index_file(path))
        self._files[file.name] = file

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove all files that are not among ``names``, and their chunks."""
        kept_names = set(names)
        # Sources are full paths: after a move of the data folder, chunks remain whose file no longer exists.
        sources = {str((self._folder / name).resolve()) for name in kept_names}
        if self._library.store._collection_exists:
            for source in self._library.store.indexed_sources() - sources:
                self._library.store.delete_by_source(source)
        for path in self._folder.glob("*.md"):
            if path.name not in kept_names:
                path.unlink()
                path.with_suffix(".lines.json").unlink(missing_ok=True)

    def search(self, text: str, count: int) -> list[Chunk]:
        """Return at most ``count`` chunks by descending score; equal scores in order of time."""
        if self.is_empty:
            return []
        results = asyncio.run(self._library.search(text[:QUERY_LIMIT_CHARS], top_k=count))
        chunks = [
            Chunk(
                name=Path(cast(str, hit["source"])).name,
                text=cast(str, hit["content"]),
                heading=cast(str, hit["heading"]),
                start_line=cast(int, hit["start_line"]),
                end_line=cast(int, hit["end_line"]),
                score=float(cast(float, hit["score"])),
            )
            for hit in results
        ]
        return sorted(chunks, key=lambda chunk: (-chunk.score, chunk.name, chunk.start_line, chunk.text))

    def file(self, name: str) -> DayFile:
        """Return the file of a chunk by its name. Raises KeyError for a file that is not part of the namespace."""
        return self._files[name]

    def refresh(self) -> None:
        """Reconnect if the engine was restarted, and index the files again, as it may have lost chunks."""
        generation = self._milvus.ensure()
        if generation != self.generation:
            self._library = self._open()
            for name in self._files:
                asyncio.run(self._library.index_file(self._folder / name))
            self.generation = generation

    def _open(self) -> MemSearch:
        """Open the library on the namespace's collection, with settings that save time in each search."""
        # A collection per namespace, because the library's filter by path prefix also matches longer names.
        library = MemSearch(
            [],
            embedding_provider=embedding.PROVIDER,
            embedding_model=self.note.model,
            embedding_batch_size=embedding.BATCH_TEXTS,
            milvus_uri=self._milvus.uri,
            milvus_token=self._milvus.token,
            collection=f"ns_{self._folder.name}",
            max_chunk_size=self.note.max_chunk_chars,
        )
        # Before each search the library counts the rows, since keyword search over none crashes the engine; that takes
        # a quarter of a search's time. It is not needed here: an empty namespace is not searched (``is_empty``).
        vars(library.store)["_collection_is_empty"] = lambda: False
        if self._milvus.lite is not None:
            # Milvus Lite has built an index when the call returns; pymilvus would wait half a second for each of two.
            library.store._connect(create_local_storage=True)
            client = library.store._client
            vars(client)["create_index"] = partial(client.create_index, sync=False)
        return library

    def close(self) -> None:
        """Close the connection; files and collection stay. Stops Milvus Lite for all namespaces of the process."""
        self._library.close()

    def drop(self) -> None:
        """Delete the collection and all files."""
        self._library.store.drop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._files.clear()


def check_same(folder: Path, note: IndexNote) -> None:
    """Raise CallError FAILED_PRECONDITION if the namespace was indexed with other settings than ``note``."""
    made_with = read_note(folder)
    if made_with is not None and made_with != note:
        raise failed_precondition(
            f"the namespace was indexed with {made_with.model}, {made_with.dimension} dimensions, chunks of "
            f"{made_with.max_chunk_chars} characters; at hand is {note.model}, {note.dimension} dimensions, chunks "
            f"of {note.max_chunk_chars}: reset the namespace and ingest it again"
        )


def give_milvus_lite_a_home(data_dir: Path) -> None:
    """Set HOME to the data folder if it is not writable, as it often is in containers.

    Milvus Lite maps files below HOME and cannot create a collection otherwise.
    """
    home = Path(os.environ.get("HOME") or "/nonexistent")
    if not os.access(home, os.W_OK):
        os.environ["HOME"] = str(data_dir.resolve())


def reason_of(error: MilvusException) -> str:
    """Return an error of the database as one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]


def names_of(files: Sequence[DayFile]) -> list[str]:
    """Return the names of files."""
    return [file.name for file in files]


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
