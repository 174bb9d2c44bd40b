"""Wraps the library MemPalace: confines it to a folder, without network, and gives it ready-made vectors.

The library embeds a question itself, with one model for the whole process. A substitute for that model returns the
vector that the current call has already computed for its question, from a context variable.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mempalace import embedding as library_embedding  # type: ignore[import-not-found]
from mempalace.backends import get_backend  # type: ignore[import-not-found]
from mempalace.convo_miner import detect_convo_room  # type: ignore[import-not-found]
from mempalace.ids import make_convo_drawer_id  # type: ignore[import-not-found]
from mempalace.palace import (  # type: ignore[import-not-found]
    clear_validated_embedder_identity,
    get_collection,
)
from mempalace.searcher import search_memories  # type: ignore[import-not-found]

from memarena_backend_mempalace.drawers import EVENTS_ROOM, Drawer

STORE = "sqlite_exact"
STORE_FILE = "sqlite_exact.sqlite3"
WING = "life"
"""Name of the single wing of each palace: the library's level above rooms."""
BATCH_DRAWERS = 1_000
"""Drawers that are stored by one call of the library."""

_vector: ContextVar[list[float]] = ContextVar("vector of the question")


class MemPalaceError(Exception):
    """The library reports a failure; the message is one line."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A result of a search, complete even if it takes several drawers, with all sources that have the same words."""

    text: str
    time: str
    """Time of its first turn, or of its event, RFC 3339."""
    session_ids: tuple[str, ...]
    turn_ids: tuple[str, ...]
    event_ids: tuple[str, ...]


def keep_to_itself(home: Path) -> None:
    """Make the library read only the settings set here, and write its locks below ``home``, which is emptied."""
    shutil.rmtree(home, ignore_errors=True)  # it has a lock file for each palace ever written
    home.mkdir(mode=0o700)
    for name in [name for name in os.environ if name.startswith(("MEMPALACE_", "MEMPAL_"))]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(home),
        "MEMPALACE_CONFIG_DIR": str(home),
        "MEMPALACE_BACKEND": STORE,
        # Recorded in each palace: vectors come from an API, not from a model that the library would load.
        "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
        "ANONYMIZED_TELEMETRY": "False",
        "HF_HUB_OFFLINE": "1",
    }
    library_embedding.configured_embedding_function = _GivenVectors


class _GivenVectors:
    """The embedding model that the library gets: returns the vector of the current question."""

    def embed_query(self, input: Sequence[str]) -> list[list[float]]:  # noqa: A002 (the library's name)
        (_,) = input
        return [_vector.get()]

    def embed_documents(self, input: Sequence[str]) -> list[list[float]]:  # noqa: A002
        raise MemPalaceError(f"the library wants vectors of {len(input)} drawers, which it should have been given")


class Palace:
    """A palace in its own folder. Methods raise MemPalaceError, sqlite3.Error, or other errors of the library."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder.resolve())

    @property
    def is_empty(self) -> bool:
        """Whether no drawer was ever added."""
        return not (Path(self._path) / STORE_FILE).is_file()

    def add(self, drawers: Sequence[Drawer], vectors: Sequence[list[float]]) -> None:
        """Add drawers with their vectors; on return they are on disk, and the palace is closed, so it can be copied."""
        if not drawers:
            return
        collection = get_collection(self._path, create=True, backend=STORE)
        try:
            before = int(collection.count())
            for start in range(0, len(drawers), BATCH_DRAWERS):
                batch = drawers[start : start + BATCH_DRAWERS]
                collection.upsert(
                    ids=[_id_of(drawer) for drawer in batch],
                    documents=[drawer.text for drawer in batch],
                    metadatas=[_metadata_of(drawer) for drawer in batch],
                    embeddings=list(vectors[start : start + BATCH_DRAWERS]),
                )
            stored = int(collection.count()) - before
        finally:
            self.close()
        if stored != len(drawers):
            raise MemPalaceError(f"{len(drawers)} drawers were added, but {stored} were stored")

    def search(self, text: str, vector: list[float], count: int) -> list[Passage]:
        """Return at most ``count`` passages, best first. ``vector`` is the question's."""
        token = _vector.set(vector)
        try:
            answer = search_memories(text, self._path, n_results=count)
        finally:
            _vector.reset(token)
        if "error" in answer:
            # On any failure the library returns an empty list and a reason.
            raise MemPalaceError(" ".join(f"{answer['error']} {answer.get('details', '')}".split()))
        drawers = [[hit, *hit.get("also_in", ())] for hit in answer["results"]]
        ids = list(dict.fromkeys(str(match["drawer_id"]) for same in drawers for match in same))
        stored = self._get(ids)
        by_text: dict[str, Passage] = {}
        for same in drawers:
            drawer_ids = [str(match["drawer_id"]) for match in same]
            # All pieces of a turn have the id of its first drawer here: the best-ranked one represents the turn.
            if drawer_ids[0] not in by_text:
                by_text[drawer_ids[0]] = self._passage([stored[drawer_id] for drawer_id in dict.fromkeys(drawer_ids)])
        return list(by_text.values())

    def close(self) -> None:
        """Close the files."""
        get_backend(STORE).close_palace(self._path)
        clear_validated_embedder_identity(self._path)

    def _passage(self, same: Sequence[tuple[str, dict[str, Any]]]) -> Passage:
        """Return one passage for drawers that hold the same words."""
        text, first = same[0]
        pieces = int(first["pieces"])
        if pieces > 1:
            following = [_name(first, int(first["chunk_index"]) + n) for n in range(1, pieces)]
            drawers = self._get(following)
            text += "".join(drawers[drawer_id][0] for drawer_id in following)
        metas = [meta for _, meta in same]
        turns = [meta for meta in metas if not meta["event"]]
        return Passage(
            text=text,
            time=str(first["filed_at"]),
            session_ids=tuple(dict.fromkeys(str(meta["source_file"]) for meta in turns)),
            turn_ids=tuple(dict.fromkeys(turn for meta in turns for turn in str(meta["turns"]).split())),
            event_ids=tuple(dict.fromkeys(str(meta["source_file"]) for meta in metas if meta["event"])),
        )

    def _get(self, ids: Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return text and metadata of drawers by id. Raises MemPalaceError if one does not exist."""
        collection = get_collection(self._path, create=False, backend=STORE, read_only=True)
        stored = collection.get(ids=list(ids), include=["documents", "metadatas"])
        by_id = dict(zip(stored.ids, zip(stored.documents, stored.metadatas, strict=True), strict=True))
        if len(by_id) != len(ids):
            raise MemPalaceError(f"{len(ids) - len(by_id)} of {len(ids)} drawers are found, but not there")
        return by_id


def _room_of(drawer: Drawer) -> str:
    return EVENTS_ROOM if drawer.is_event else cast(str, detect_convo_room(drawer.topic_of))


def _metadata_of(drawer: Drawer) -> dict[str, object]:
    """Return the metadata of the library's conversation miner, with times of the life, plus the ids of the turns."""
    meta: dict[str, object] = {
        "wing": WING,
        "room": _room_of(drawer),
        "source_file": drawer.source,
        "chunk_index": drawer.number,
        "added_by": "memarena",
        "filed_at": drawer.said_at,
        "authored_at": drawer.said_at,
        "ingest_mode": "convos",
        "extract_mode": "exchange",
        "event": drawer.is_event,
        "turns": " ".join(drawer.turn_ids),
        "pieces": drawer.pieces,
    }
    if drawer.pieces > 1:
        meta["parent_drawer_id"] = _name(meta, drawer.first)
    return meta


def _id_of(drawer: Drawer) -> str:
    return _name({"room": _room_of(drawer), "source_file": drawer.source, "event": drawer.is_event}, drawer.number)


def _name(meta: dict[str, Any], number: int) -> str:
    """Return the id of the drawer ``number`` of a source, whose metadata is ``meta``."""
    kind = "event" if meta["event"] else "exchange"
    return cast(str, make_convo_drawer_id(WING, meta["room"], meta["source_file"], kind, number))
