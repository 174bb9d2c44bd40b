"""Implements the backend memos: extracts each session and adds its memories; none is ever changed or removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from memarena_backend import (
    Call,
    Capability,
    Day,
    DayFolders,
    Description,
    Item,
    KeptFact,
    Memory,
    ModelAccess,
    ModelClient,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    Retention,
    SearchResult,
    failed_precondition,
    fit_ranked,
)
from memos.templates.mem_reader_prompts import SIMPLE_STRUCT_MEM_READER_PROMPT  # type: ignore[import-not-found]

from memarena_backend_memos.conversation import parts_of
from memarena_backend_memos.extracting import extract
from memarena_backend_memos.models import CallEmbedder, CallLLM, embedder_of, required_extractor
from memarena_backend_memos.settings import Settings
from memarena_backend_memos.store import Store, StoredMemory

KEPT_FACTS = (KeptFact("My dog is called {value}.", "What is my dog called?"),)
"""A fact that any suitable extractor stores: the name of a pet."""

_OPTIONS = (OptionSpec("k", "How many memories are returned at most, an integer of at least 1.", "10"),)
_PROMPT_BYTES = len(SIMPLE_STRUCT_MEM_READER_PROMPT.encode())
"""Size of the library's prompt without the conversation."""
_BYTES_PER_TOKEN = 3
"""A low estimate, so that a prompt is too short rather than too long."""
_MIN_PART_BYTES = 1_000
"""Least size of a part, even if the model's window is smaller than prompt and reply."""


class MemosMemory(Memory):
    """Keeps an embedded store per namespace, in a folder per committed day."""

    def __init__(self, data_dir: Path, settings: Settings) -> None:
        self._settings = settings
        self._folders = DayFolders(data_dir / "memories")
        self._stores: dict[str, Store] = {}
        """Open stores by namespace."""
        self._client = ModelClient()

    def describe(self) -> Description:
        library, store = version("memoryos").partition("+")[0], version("qdrant-client")
        return Description(
            name="memos",
            version=f"{version('memarena-backend-memos')} (MemoryOS {library}, general text; qdrant-client {store})",
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
            retention=Retention.EXTRACTED,
            kept_facts=KEPT_FACTS,
        )

    # -------------------------------------------------------------- days

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        with_text = [session for session in day.sessions if any(turn.text.strip() for turn in session.turns)]
        self._close(namespace)
        store = self._stores[namespace] = Store(self._folders.begin(namespace, day.index))
        notices: Sequence[Notice] = ()
        if with_text:
            error_field = "header.model_access"
            extractor, embedder = required_extractor(call.models, error_field), embedder_of(call.models, error_field)
            part_bytes = self._part_bytes(call.models, extractor.model)
            llm = CallLLM(self._client, extractor, call, self._settings.reply_tokens)
            extraction = extract(llm, (parts_of(session, day.owner, part_bytes) for session in with_text))
            store.add(extraction.drafts, CallEmbedder(self._client, embedder, call, "passage"))
            notices = extraction.notices()
        self._folders.keep(namespace, day.index)  # from here on the day is durable
        return notices

    def _part_bytes(self, models: ModelAccess | None, extractor: str) -> int:
        """Return the bytes of a part that fit into the model's window with prompt and reply.

        Capped by the setting; if the window is unknown, the setting alone decides.
        """
        model = models.model(extractor) if models is not None else None
        if model is None or not model.context_window_tokens:
            return self._settings.part_bytes
        tokens = model.context_window_tokens - self._settings.reply_tokens
        return max(_MIN_PART_BYTES, min(self._settings.part_bytes, tokens * _BYTES_PER_TOKEN - _PROMPT_BYTES))

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        last = max(day.index for day in days)
        folder = self._folders.restore(namespace, last)
        if folder is None:
            raise failed_precondition(f"the memories of the committed day {last} are not there; Reset the namespace")
        self._stores[namespace] = Store(folder)

    def unload(self, namespace: str) -> None:
        self._close(namespace)
        self._folders.unload(namespace)

    def forget(self, namespace: str) -> None:
        self._close(namespace)
        self._folders.forget(namespace)

    def close(self) -> None:
        for namespace in list(self._stores):
            self._close(namespace)
        self._client.close()

    def _close(self, namespace: str) -> None:
        store = self._stores.pop(namespace, None)
        if store is not None:
            store.close()

    # -------------------------------------------------------------- questions

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        count = query.int_option("k", minimum=1)
        embedder = CallEmbedder(self._client, embedder_of(call.models, "model_access"), call, "query")
        results = self._stores[namespace].search(query.text, count, embedder)
        return fit_ranked([_item(memory) for memory in results], query.max_items, query.max_context_tokens)


def _item(result: StoredMemory) -> Item:
    return Item(result.text, result.score, (result.session_id,), (), result.said_at, derived=True)
