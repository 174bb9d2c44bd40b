"""Mem0 as a library: silenced before it is imported, opened on a folder, told the day of what it reads."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from memarena_backend_mem0.models import Extractor, LibraryEmbedder, current_work

USER = "owner"
"""Mem0 wants an id of its user. A store holds one namespace only, so it tells nobody apart."""
COLLECTION = "memories"
_GIVEN_BY_US = "langchain"
"""Mem0's name for models that are handed over as objects; it takes no other name than those it knows."""

T = TypeVar("T")


def prepare(data_dir: Path) -> None:
    """Import Mem0 so that it sends nothing, shows nothing and writes below ``data_dir`` only.

    Must come before anything else imports ``mem0``. Raises OSError where the folder cannot be made.
    """
    home = data_dir / "mem0-home"
    home.mkdir(parents=True, exist_ok=True)
    # The flag switches off PostHog, the store of migrations, and the notices that are fetched.
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(home), TMPDIR=str(home))
    from mem0.memory import main  # type: ignore[import-not-found]  # noqa: PLC0415
    from mem0.utils import factory  # type: ignore[import-not-found]  # noqa: PLC0415

    factory.LlmFactory.register_provider(_GIVEN_BY_US, f"{Extractor.__module__}.{Extractor.__name__}")
    embedder = f"{LibraryEmbedder.__module__}.{LibraryEmbedder.__name__}"
    factory.EmbedderFactory.provider_to_class[_GIVEN_BY_US] = embedder
    main.generate_additive_extraction_prompt = _dated(main.generate_additive_extraction_prompt)


def versions() -> str:
    """What is behind the backend, for Describe."""
    return f"mem0ai {version('mem0ai')}, embedded qdrant {version('qdrant-client')}"


class Store:
    """The memories of one namespace, open in a folder: one Qdrant collection and one history."""

    def __init__(self, folder: Path, dimension: int) -> None:
        from mem0 import Memory  # type: ignore[import-not-found]  # noqa: PLC0415
        from mem0.configs.base import MemoryConfig  # type: ignore[import-not-found]  # noqa: PLC0415

        path = folder / "qdrant"
        if not path.exists():
            _make_collection(path, dimension)
        config = MemoryConfig(
            llm={"provider": _GIVEN_BY_US, "config": {}},
            embedder={"provider": _GIVEN_BY_US, "config": {}},
            vector_store={
                "provider": "qdrant",
                "config": {
                    "collection_name": COLLECTION,
                    "embedding_model_dims": dimension,
                    "path": str(path),
                    "on_disk": True,
                },
            },
            history_db_path=str(folder / "history.sqlite"),
        )
        self._memory = Memory(config)
        self._qdrant = self._memory.vector_store.client
        self._memory.vector_store.insert = _noticed(self._memory.vector_store.insert)

    def add(self, messages: list[dict[str, str]], metadata: dict[str, str], *, infer: bool) -> int:
        """Give Mem0 messages; how many memories it says that it added. Raises what Mem0 raises."""
        added = self._memory.add(messages, user_id=USER, metadata=metadata, infer=infer)
        return len(added["results"])

    def search(self, text: str, count: int, threshold: float) -> list[dict[str, Any]]:
        """Memories by falling score, as Mem0 returns them: ``id``, ``memory``, ``score``, ``metadata``."""
        memories: list[dict[str, Any]] = self._memory.search(
            text, top_k=count, threshold=threshold, filters={"user_id": USER}
        )["results"]
        return memories

    def count(self) -> int:
        """Memories in the store."""
        return int(self._qdrant.count(COLLECTION, exact=True).count)

    def close(self) -> None:
        """Let go of the files. Mem0's own ``close`` leaves Qdrant open."""
        self._memory.close()
        self._qdrant.close()


def _make_collection(path: Path, dimension: int) -> None:
    """The collection as Mem0 would make it, but for the distance: dot product, of vectors of length 1.

    With Mem0's own, cosine, the embedded Qdrant scales the stored vectors anew in every search. So scores change from
    one search to the next, and two searches at a time write to the same vectors.
    """
    from qdrant_client import QdrantClient, models  # type: ignore[import-not-found]  # noqa: PLC0415

    client = QdrantClient(path=str(path))
    try:
        client.create_collection(
            COLLECTION,
            vectors_config=models.VectorParams(size=dimension, distance=models.Distance.DOT, on_disk=True),
            sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
    finally:
        client.close()


def _dated(build: Callable[..., str]) -> Callable[..., str]:
    """The builder of Mem0's prompt, told the day of the session.

    It takes the day as a parameter, which ``add`` does not pass on: relative times would be read from the clock of the
    machine, and the prompt would differ from one run to the next.
    """

    @functools.wraps(build)
    def with_day(**sections: Any) -> str:
        observed = current_work().observed
        assert observed is not None
        return build(**{**sections, "timestamp": observed.isoformat(), "current_date": observed.isoformat()})

    return with_day


def _noticed(insert: Callable[..., T]) -> Callable[..., T]:
    """The store's ``insert``, whose failures Mem0 logs and forgets where at least one memory is stored."""

    @functools.wraps(insert)
    def inserting(*args: Any, **kwargs: Any) -> T:
        try:
            return insert(*args, **kwargs)
        except Exception as error:
            raise current_work().fail(error) from error

    return inserting
