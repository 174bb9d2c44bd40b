"""Implements the backend langmem: a store per namespace, saved to a new folder after each day."""

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
    Endpoint,
    Item,
    KeptFact,
    Limits,
    Memory,
    ModelClient,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    Retention,
    SearchResult,
    extractor_of,
    failed_precondition,
    fit_ranked,
    invalid_argument,
)
from memarena_backend.embedders import Embedders

from memarena_backend_langmem.chat_model import GatewayModel
from memarena_backend_langmem.conversation import parts_of
from memarena_backend_langmem.extracting import take_in
from memarena_backend_langmem.memories import Fact, Memories

QUERY_LIMIT_CHARS = 8_192
"""Characters of a question that are searched for; no question needs more."""
KEPT_FACTS = (KeptFact("My dog is called {value}.", "What is my dog called?"),)
"""A fact that any suitable extractor keeps."""
MAX_TURN_BYTES = 65_536
"""Longer turns are refused, since every 8,000 bytes cost a model call."""
_OPTIONS = (OptionSpec("k", "How many memories are returned at most, an integer of at least 1.", "10"),)


class LangMemMemory(Memory):
    """Holds a store per namespace in RAM, and saves it to the folder of its last day."""

    def __init__(self, data_dir: Path) -> None:
        self._folders = DayFolders(data_dir / "memories")
        self._loaded_memories: dict[str, Memories] = {}
        """By namespace, the stores that are in the state after the last day."""
        self._client = ModelClient()
        self._embedders = Embedders(self._client)

    def describe(self) -> Description:
        return Description(
            name="langmem",
            version=f"{version('memarena-backend-langmem')} (langmem {version('langmem')})",
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
            retention=Retention.EXTRACTED,
            kept_facts=KEPT_FACTS,
            limits=Limits(max_turn_text_bytes=MAX_TURN_BYTES),
        )

    # -------------------------------------------------------------- days

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        # The store is changed in place, so the namespace counts as not loaded until the day is complete.
        memories = self._loaded_memories.pop(namespace, None) or Memories()
        notices: Sequence[Notice] = ()
        if any(parts_of(session) for session in day.sessions):
            model = GatewayModel(self._client, _extractor(call), call)
            memories.embed_with(self._embedders.choose(call, memories.model, "header.model_access"), call)
            notices = take_in(memories, day, model, call)
            memories.embed_with(None, call)
        folder = self._folders.begin(namespace, day.index)
        memories.save(folder)
        self._folders.keep(namespace, day.index)
        self._loaded_memories[namespace] = memories
        return notices

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        last = max(day.index for day in days)
        folder = self._folders.restore(namespace, last)
        if folder is None:
            raise failed_precondition(
                f"the memories of day {last} are not in the data folder, and there is no model at hand to extract them "
                "again: Reset the namespace and ingest it again"
            )
        self._loaded_memories[namespace] = Memories(folder)

    def unload(self, namespace: str) -> None:
        self._loaded_memories.pop(namespace, None)
        self._folders.unload(namespace)

    def forget(self, namespace: str) -> None:
        self._loaded_memories.pop(namespace, None)
        self._folders.forget(namespace)

    def close(self) -> None:
        self._client.close()

    # -------------------------------------------------------------- questions

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        count = query.int_option("k", minimum=1)
        memories = self._loaded_memories[namespace]
        if memories.model is None:
            return SearchResult(())
        text = query.text[:QUERY_LIMIT_CHARS]
        (vector,) = self._embedders.choose(call, memories.model, "model_access").embed([text], "query", call)
        facts = memories.search(text, vector, count)
        return fit_ranked([_item(fact) for fact in facts], query.max_items, query.max_context_tokens)


def _extractor(call: Call) -> Endpoint:
    """Return the model that extracts in this call. Raises CallError INVALID_ARGUMENT if there is none."""
    endpoint = extractor_of(call.models)
    if endpoint is None:
        raise invalid_argument("header.model_access", "is required, with an extractor or a reader: LangMem extracts")
    return endpoint


def _item(fact: Fact) -> Item:
    source = fact.source
    return Item(fact.text, fact.score, session_ids=source.session_ids, time=source.time, derived=True)
