"""Wraps the library Mem0: imports it without telemetry, opens a store in a folder, and sets the date in its prompts."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from memarena_backend_mem0.models import Extractor, LibraryEmbedder, current_work

USER = "owner"
"""Mem0 requires a user id. It has no effect here, since each store holds a single namespace."""
COLLECTION = "memories"
_GIVEN_BY_US = "langchain"
"""Mem0's provider name under which the models of this backend are registered; Mem0 accepts only names it knows."""

T = TypeVar("T")


def prepare(data_dir: Path) -> None:
    """Import Mem0 so that it sends no telemetry, prints nothing and writes below ``data_dir`` only.

    Call it before anything else imports ``mem0``. Raises OSError if the folder cannot be created.
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
    """Return the versions of the libraries, for Describe."""
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
        """Pass messages to Mem0; return how many memories it reports as added. Raises any exception of Mem0."""
        added = self._memory.add(messages, user_id=USER, metadata=metadata, infer=infer)
        return len(added["results"])

    def search(self, text: str, count: int, threshold: float) -> list[dict[str, Any]]:
        """Return memories by descending score, as Mem0's dicts with ``id``, ``memory``, ``score``, ``metadata``."""
        memories: list[dict[str, Any]] = self._memory.search(
            text, top_k=count, threshold=threshold, filters={"user_id": USER}
        )["results"]
        return memories

    def count(self) -> int:
        """Return the number of memories in the store."""
        return int(self._qdrant.count(COLLECTION, exact=True).count)

    def close(self) -> None:
        """Close the files, Qdrant's too, which Mem0's own ``close`` leaves open."""
        self._memory.close()
        self._qdrant.close()


def _make_collection(path: Path, dimension: int) -> None:
    """Create the collection as Mem0 would, except for the distance: dot product, with vectors of length 1.

    With cosine, Mem0's distance, the embedded Qdrant normalises the stored vectors again in every search. So scores
    would change from search to search, and overlapping searches would write to the same vectors.
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
    """Wrap the builder of Mem0's prompt so that it gets the day of the session.

    The builder has a parameter for the day, but ``add`` does not pass it: relative times would refer to the clock of
    the machine, and the prompt would differ from run to run.
    """

    @functools.wraps(build)
    def with_day(**sections: Any) -> str:
        observed = current_work().observed
        assert observed is not None
        return build(**{**sections, "timestamp": observed.isoformat(), "current_date": observed.isoformat()})

    return with_day


def _noticed(insert: Callable[..., T]) -> Callable[..., T]:
    """Wrap the store's ``insert`` to keep its failures, which Mem0 only logs if at least one memory is stored."""

    @functools.wraps(insert)
    def inserting(*args: Any, **kwargs: Any) -> T:
        try:
            return insert(*args, **kwargs)
        except Exception as error:
            raise current_work().fail(error) from error

    return inserting
