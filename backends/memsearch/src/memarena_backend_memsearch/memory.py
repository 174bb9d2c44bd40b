"""Implements the memory with MemSearch: days become markdown, searches are hybrid, chunks are traced to their turns."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import openai
from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    Item,
    Memory,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    SearchResult,
    failed_precondition,
    fit_ranked,
    unavailable,
)
from pymilvus import MilvusException  # type: ignore[import-untyped]

from memarena_backend_memsearch import embedding, index
from memarena_backend_memsearch.embedding import (
    CurrentEmbedding,
    EmbeddedE5,
    Embedder,
    EmbeddingError,
    EndpointEmbedder,
    Purpose,
)
from memarena_backend_memsearch.index import Chunk, IndexNote, Milvus, NamespaceIndex
from memarena_backend_memsearch.lite import MilvusLite
from memarena_backend_memsearch.markdown import day_file
from memarena_backend_memsearch.settings import Settings

_OPTIONS = (OptionSpec("k", "How many chunks are returned at most, an integer of at least 1.", "10"),)
_CLIENT_TIMEOUT_S = 120.0

DEFAULTS = Settings()


class MemSearchMemory(Memory):
    """Keeps a collection of Milvus and a folder of markdown files per namespace."""

    def __init__(self, data_dir: Path, settings: Settings = DEFAULTS) -> None:
        embedding.register()
        self._data_dir = data_dir
        self._settings = settings
        self._lite: MilvusLite | None = None
        if settings.milvus_uri is None:
            index.give_milvus_lite_a_home(data_dir)
            self._lite = MilvusLite(data_dir / "milvus.db")
        self._milvus = Milvus(settings.milvus_uri or str(data_dir / "milvus.db"), settings.milvus_token, self._lite)
        self._opening = threading.Lock()
        self._indexes: dict[str, NamespaceIndex] = {}
        self._dimensions: dict[str, int] = {}
        """Length of a vector by model, measured by one embedding."""
        self._clients: dict[str, openai.OpenAI] = {}
        self._mutex = threading.Lock()
        self._embedded: EmbeddedE5 | None = None

    def start(self) -> None:
        """Start Milvus Lite before the first call. Raises CallError UNAVAILABLE if that fails."""
        if self._lite is not None:
            self._lite.ensure()

    def describe(self) -> Description:
        library, engine = version("memsearch"), version("milvus-lite")
        where = "Milvus server" if self._settings.milvus_uri else f"milvus-lite {engine}"
        return Description(
            name="memsearch",
            version=f"{version('memarena-backend-memsearch')} (memsearch {library}, {where})",
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        with self._index(namespace, call, "passage", create=True) as namespace_index:
            namespace_index.add(day_file(day))
        return ()

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        files = [day_file(day) for day in days]
        with self._index(namespace, call, "passage", create=True) as namespace_index:
            # First remove uncommitted chunks, which an interrupted day may have left.
            namespace_index.keep_only(index.names_of(files))
            for file in files:
                namespace_index.add(file)

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        count = query.int_option("k", minimum=1)
        if query.max_items is not None:
            count = min(count, query.max_items)
        with self._index(namespace, call, "query", create=False) as namespace_index:
            items = _items(namespace_index.search(query.text, count), namespace_index)
        return fit_ranked(items, None, query.max_context_tokens)

    def unload(self, namespace: str) -> None:
        # Its connection is shared by all namespaces and stays.
        self._indexes.pop(namespace, None)

    def forget(self, namespace: str) -> None:
        folder = index.folder_of(self._data_dir, namespace)
        note = index.read_note(folder)
        namespace_index = self._indexes.pop(namespace, None)
        if namespace_index is not None and namespace_index.generation != self._milvus.ensure():
            namespace_index = None  # connected to an engine that has died
        if namespace_index is None and note is not None:
            # Not in use since the engine's start: opened, so that its collection is deleted too.
            with _as_unavailable(), self._asking(note, None, "passage", Call.internal()):
                namespace_index = NamespaceIndex(folder, self._milvus, note)
        if namespace_index is not None:
            with _as_unavailable():
                namespace_index.drop()

    def close(self) -> None:
        if self._indexes:
            self._indexes.popitem()[1].close()
        self._indexes.clear()
        for client in self._clients.values():
            client.close()
        if self._lite is not None:
            self._lite.stop()

    # -------------------------------------------------------------- the index of a namespace

    @contextmanager
    def _index(self, namespace: str, call: Call, purpose: Purpose, *, create: bool) -> Iterator[NamespaceIndex]:
        """Yield the index of a namespace with an embedder in place. Faults of the database become UNAVAILABLE."""
        namespace_index = self._indexes.get(namespace)
        embedder = self._embedder(call, namespace_index.note if namespace_index else None, namespace)
        with _as_unavailable():
            note = namespace_index.note if namespace_index else self._note(embedder, call, namespace)
            if namespace_index is not None:
                with self._opening, self._asking(note, embedder, "passage", call):
                    namespace_index.refresh()
            with self._asking(note, embedder, purpose, call):
                if namespace_index is None:
                    assert create, "a search runs on a loaded namespace"
                    folder = index.folder_of(self._data_dir, namespace)
                    namespace_index = self._indexes[namespace] = NamespaceIndex(folder, self._milvus, note)
                yield namespace_index

    @contextmanager
    def _asking(self, note: IndexNote, embedder: Embedder | None, purpose: Purpose, call: Call) -> Iterator[None]:
        current = CurrentEmbedding(embedder or _NoEmbedder(note.model), note.dimension, purpose, call)
        with embedding.embed_with(current):
            yield

    def _note(self, embedder: Embedder, call: Call, namespace: str) -> IndexNote:
        """Return model, dimension and chunk size of the index. Raises CallError if it was made with other values."""
        folder = index.folder_of(self._data_dir, namespace)
        previous = index.read_note(folder)
        if isinstance(embedder, _NoEmbedder) and previous is not None:
            return previous
        with self._mutex:
            dimension = self._dimensions.get(embedder.model)
        if dimension is None:
            # Any text will do: only the length of its vector is needed.
            dimension = len(embedder.embed(["dimension"], "query", call)[0])
            with self._mutex:
                self._dimensions[embedder.model] = dimension
        note = IndexNote(embedder.model, dimension, self._settings.max_chunk_chars)
        index.check_same(folder, note)
        return note

    # -------------------------------------------------------------- which embedder

    def _embedder(self, call: Call, made_with: IndexNote | None, namespace: str) -> Embedder:
        """Return the configured endpoint's embedder, else the gateway's, else the model in this process.

        An index of another model gets, in place of the last, an embedder that fails when it is used.
        """
        settings = self._settings
        if settings.embedding_url and settings.embedding_model:
            client = self._client(settings.embedding_url, settings.embedding_api_key)
            return EndpointEmbedder(client, settings.embedding_model, prefixes=settings.embedding_prefixes)
        models = call.models
        offered = embedding.gateway_model(models)
        if models is not None and offered is not None:
            client = self._client(models.base_url, None)
            return EndpointEmbedder(client, offered, models.token, prefixes=settings.embedding_prefixes)
        previous = made_with or index.read_note(index.folder_of(self._data_dir, namespace))
        if previous is not None and previous.model != embedding.EMBEDDED_MODEL:
            return _NoEmbedder(previous.model)
        return self._in_process()

    def _in_process(self) -> EmbeddedE5:
        with self._mutex:
            if self._embedded is None:
                try:
                    self._embedded = EmbeddedE5()
                except EmbeddingError as error:
                    raise failed_precondition(str(error)) from error
            return self._embedded

    def _client(self, base_url: str, api_key: str | None) -> openai.OpenAI:
        with self._mutex:
            client = self._clients.get(base_url)
            if client is None:
                # No hidden retries: the harness times searches and counts calls.
                client = openai.OpenAI(
                    base_url=base_url, api_key=api_key or "none", max_retries=0, timeout=_CLIENT_TIMEOUT_S
                )
                self._clients[base_url] = client
            return client


@contextmanager
def _as_unavailable() -> Iterator[None]:
    try:
        yield
    except MilvusException as error:
        raise unavailable(f"Milvus failed: {index.reason_of(error)}") from error


class _NoEmbedder:
    """Replaces a model that is not available: an index without missing chunks can be opened without its model."""

    def __init__(self, model: str) -> None:
        self.model = model

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        raise unavailable(f"the namespace was indexed with {self.model}, which this call gives no access to")


def _items(chunks: Iterable[Chunk], namespace_index: NamespaceIndex) -> list[Item]:
    """Return an item for each chunk: the complete turns of which it has lines, unchanged, under their heading.

    Parts of a long turn give the same item, of which the first, with the best score, is used.
    """
    items: dict[tuple[str, ...], Item] = {}
    for chunk in chunks:
        file = namespace_index.file(chunk.name)
        session = file.session_at(chunk.start_line)
        turns = file.between(chunk.start_line, chunk.end_line)
        key = (session.session_id, *(turn.turn_id for turn in turns))
        text = "\n\n".join(turn.text for turn in turns)
        item = Item(
            text=f"{chunk.heading}\n{text}" if turns else chunk.heading,
            score=chunk.score,
            session_ids=(session.session_id,),
            turn_ids=key[1:],
            time=turns[0].said_at if turns else session.started_at,
        )
        items.setdefault(key, item)
    return list(items.values())
