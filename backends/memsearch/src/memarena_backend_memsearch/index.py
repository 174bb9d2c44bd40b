"""One namespace in MemSearch: its markdown files on disk and its own collection in Milvus.

The markdown is the source of truth. MemSearch knows a chunk by its file, lines and content, so putting an index right
costs one look at each file, and only chunks that are missing are embedded.
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
"""What keyword search reads of a question. Milvus refuses texts above 65,535 bytes, and no question needs as much."""


@dataclass(frozen=True, slots=True)
class Milvus:
    """Where collections are kept. ``lite`` is the engine of this process; None where a server is used."""

    uri: str
    token: str | None
    lite: MilvusLite | None

    def ensure(self) -> int:
        """Have the database listen; the count of its starts, 0 for a server. Raises CallError UNAVAILABLE."""
        return self.lite.ensure() if self.lite else 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that was found: lines ``start_line`` to ``end_line`` of the file ``name``."""

    name: str
    text: str
    heading: str
    start_line: int
    end_line: int
    score: float


@dataclass(frozen=True, slots=True)
class IndexNote:
    """What an index was made with; kept beside the files, since vectors of another model do not fit."""

    model: str
    dimension: int
    max_chunk_chars: int


def folder_of(data_dir: Path, namespace: str) -> Path:
    """Where the files of a namespace lie. Ids are opaque and may hold any character, so a hash names the folder."""
    return data_dir / "memory" / hashlib.sha256(namespace.encode()).hexdigest()[:32]


def read_note(folder: Path) -> IndexNote | None:
    """What the index of a namespace was made with; None if there is no index, or no whole note of one."""
    try:
        return IndexNote(**json.loads((folder / NOTE_NAME).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


class NamespaceIndex:
    """The index of one namespace. Every method needs :func:`embedding.working_with` around it.

    Raises CallError where embedding fails, and MilvusException where the database does.
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
        """Whether nothing was said so far."""
        return not any(file.turns for file in self._files.values())

    def add(self, file: DayFile) -> None:
        """Write a day's file and index it. On return its chunks can be found."""
        path = self._folder / file.name
        if not (path.is_file() and path.read_text(encoding="utf-8") == file.text):
            _write(path, file.text)
        _write(path.with_suffix(".lines.json"), to_json(file))
        asyncio.run(self._library.index_file(path))
        self._files[file.name] = file

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove every file, and the chunks of every file, that is not among ``names``."""
        kept_names = set(names)
        # Sources are whole paths: a data folder that has moved leaves chunks behind that no file has any more.
        sources = {str((self._folder / name).resolve()) for name in kept_names}
        if self._library.store._collection_exists:
            for source in self._library.store.indexed_sources() - sources:
                self._library.store.delete_by_source(source)
        for path in self._folder.glob("*.md"):
            if path.name not in kept_names:
                path.unlink()
                path.with_suffix(".lines.json").unlink(missing_ok=True)

    def search(self, text: str, count: int) -> list[Chunk]:
        """The best chunks, score descending; ties in the order in which things were said."""
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
        """The file of a chunk. Raises KeyError for a chunk of a file that is not part of the namespace."""
        return self._files[name]

    def refresh(self) -> None:
        """Connect anew if the engine was started again since, and put back what it had not kept."""
        generation = self._milvus.ensure()
        if generation != self.generation:
            self._library = self._open()
            for name in self._files:
                asyncio.run(self._library.index_file(self._folder / name))
            self.generation = generation

    def _open(self) -> MemSearch:
        # One collection per namespace: the library's own filter by path prefix also matches longer names.
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
        # Before each search the library asks how many rows there are, since keyword search over none takes the engine
        # down; that is a quarter of a search's time. Here no search begins before something was said (``is_empty``).
        vars(library.store)["_collection_is_empty"] = lambda: False
        if self._milvus.lite is not None:
            # Milvus Lite has made an index when it returns; pymilvus would wait half a second for each of the two.
            library.store._connect(create_local_storage=True)
            client = library.store._client
            vars(client)["create_index"] = partial(client.create_index, sync=False)
        return library

    def close(self) -> None:
        """Let go of the connection; files and collection stay. Ends Milvus Lite for every namespace of the process."""
        self._library.close()

    def drop(self) -> None:
        """Forget everything, on disk too."""
        self._library.store.drop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._files.clear()


def check_same(folder: Path, note: IndexNote) -> None:
    """Raise CallError FAILED_PRECONDITION if the namespace was indexed with something else than ``wanted``."""
    made_with = read_note(folder)
    if made_with is not None and made_with != note:
        raise failed_precondition(
            f"the namespace was indexed with {made_with.model}, {made_with.dimension} dimensions, chunks of "
            f"{made_with.max_chunk_chars} characters; at hand is {note.model}, {note.dimension} dimensions, chunks "
            f"of {note.max_chunk_chars}: reset the namespace and ingest it again"
        )


def give_milvus_lite_a_home(data_dir: Path) -> None:
    """Milvus Lite maps files below HOME and makes no collection without; a container's user often has none to write."""
    home = Path(os.environ.get("HOME") or "/nonexistent")
    if not os.access(home, os.W_OK):
        os.environ["HOME"] = str(data_dir.resolve())


def reason_of(error: MilvusException) -> str:
    """An error of the database in one line."""
    return " ".join(str(error).split())[:300]


def names_of(files: Sequence[DayFile]) -> list[str]:
    """Names of files."""
    return [file.name for file in files]


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
