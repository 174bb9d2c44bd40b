"""Implements the backend graphiti: a day changes a copy of the previous day's graph, searches read the committed graph.

So a day that fails, or whose caller cancels, leaves no trace; Kuzu cannot undo the many transactions of a day.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from memarena_backend import (
    Call,
    Capability,
    Day,
    DayFolders,
    Description,
    KeptFact,
    Memory,
    ModelClient,
    ModelRole,
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
    offered,
)

from memarena_backend_graphiti.database import FILE_NAME, make_empty
from memarena_backend_graphiti.episodes import Episode, episodes_of
from memarena_backend_graphiti.graph import Graph, SearchPlan
from memarena_backend_graphiti.items import item_of
from memarena_backend_graphiti.models import CallModels, Record
from memarena_backend_graphiti.open_graphs import OpenGraphs
from memarena_backend_graphiti.settings import Settings

_log = logging.getLogger(__name__)

_OPTIONS = (
    OptionSpec("facts", "How many facts are returned at most, an integer of at least 0.", "20"),
    OptionSpec("entities", "How many summaries of entities are returned at most, an integer of at least 0.", "5"),
    OptionSpec("similarity", "Below this cosine similarity something is found by keywords alone, 0 to 1.", "0.6"),
)
KEPT_FACTS = (KeptFact("My dog is called {value}.", "What is my dog called?"),)
"""A fact that any suitable extractor keeps: a named animal is an entity, and its owner a fact."""

DEFAULTS = Settings()


@dataclass
class _Tally:
    """Counts of the sessions of a day."""

    sessions_with_text: int = 0
    empty: int = 0
    failed: int = 0
    lost: list[str] = field(default_factory=list)
    """Why episodes were lost, one reason per episode."""

    def add(self, fruitful: int, lost: Sequence[str]) -> None:
        """Count a session; ``fruitful``: how many of its episodes stored something, ``lost``: why others were lost."""
        self.sessions_with_text += 1
        self.lost += lost
        if not fruitful:
            self.failed += bool(lost)
            self.empty += 1


class GraphitiMemory(Memory):
    """Stores each namespace as a graph database, with a folder per committed day."""

    def __init__(self, data_dir: Path, settings: Settings = DEFAULTS) -> None:
        self._settings = settings
        self._folders = DayFolders(data_dir / "graphs")
        self._empty = data_dir / "empty"
        shutil.rmtree(self._empty, ignore_errors=True)
        self._empty.mkdir(parents=True)
        make_empty(self._empty, settings.buffer_pool_mb)
        self._client = ModelClient()
        self._graphs = OpenGraphs(settings)

    def describe(self) -> Description:
        return Description(
            name="graphiti",
            version=(
                f"{version('memarena-backend-graphiti')} (graphiti-core {version('graphiti-core')}, "
                f"kuzu {version('kuzu')}, an episode per {self._settings.episode})"
            ),
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
            retention=Retention.EXTRACTED,
            kept_facts=KEPT_FACTS,
        )

    # -------------------------------------------------------------- days

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        settings = self._settings
        sessions = [episodes_of(session, settings.episode, settings.episode_bytes) for session in day.sessions]
        with_text = [episodes for episodes in sessions if episodes]
        models = _models_of(self._client, call) if with_text else None
        self._graphs.let_go(namespace)
        folder = self._folders.begin(namespace, day.index)
        if not (folder / FILE_NAME).exists():
            shutil.copy(self._empty / FILE_NAME, folder)
        notices = self._ingest(folder, with_text, models) if models else []
        self._folders.keep(namespace, day.index)
        self._graphs.hold(namespace, folder)
        return notices

    def _ingest(self, folder: Path, sessions: Sequence[Sequence[Episode]], models: CallModels) -> list[Notice]:
        graph = Graph(folder, self._settings, read_only=False)
        try:
            before = graph.holding()
            tally = _Tally()
            for episodes in sessions:
                tally.add(*graph.add(episodes, models))
            return _notices(tally, models.record, before, graph.holding())
        finally:
            graph.close()

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        last = max(day.index for day in days)
        folder = self._folders.restore(namespace, last)
        if folder is None:
            raise failed_precondition(
                f"the graph of day {last} is not in the data folder any more, and making it again takes models; "
                "Reset the namespace and ingest it again"
            )
        self._graphs.hold(namespace, folder)

    def unload(self, namespace: str) -> None:
        self._graphs.let_go(namespace)
        self._folders.unload(namespace)

    def forget(self, namespace: str) -> None:
        self._graphs.let_go(namespace)
        self._folders.forget(namespace)

    def close(self) -> None:
        self._graphs.close()
        self._client.close()

    # -------------------------------------------------------------- questions

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        plan = SearchPlan(
            facts=query.int_option("facts", minimum=0),
            entities=query.int_option("entities", minimum=0),
            similarity=query.float_option("similarity", 0.0, 1.0),
        )
        with self._graphs.reading(namespace) as graph:
            if graph.is_empty or not (plan.facts or plan.entities):
                return SearchResult(())
            embedder = offered(call.models, ModelRole.EMBEDDER)
            if embedder is None:
                raise invalid_argument("model_access", "an embedder is required: Graphiti searches by vectors")
            results = graph.search(query.text, plan, CallModels(self._client, call, embedder))
        return fit_ranked([item_of(match) for match in results], query.max_items, query.max_context_tokens)


def _models_of(client: ModelClient, call: Call) -> CallModels:
    """Return the models that extract and embed a day. Raises CallError INVALID_ARGUMENT if the call lacks one."""
    extractor = extractor_of(call.models)
    embedder = offered(call.models, ModelRole.EMBEDDER)
    if extractor is None or embedder is None:
        missing = "a chat model" if extractor is None else "an embedder"
        raise invalid_argument("header.model_access", f"{missing} is required: Graphiti extracts facts and embeds them")
    return CallModels(client, call, embedder, extractor)


def _notices(
    tally: _Tally, record: Record, before: Mapping[str, tuple[object, ...]], after: Mapping[str, tuple[object, ...]]
) -> list[Notice]:
    """Return the counts of a day as notices, without zeros; ``before`` and ``after``: graph content by id."""
    stored = len(after.keys() - before.keys())
    changed = sum(after[name] != value for name, value in before.items() if name in after)
    removed = len(before.keys() - after.keys())
    first = f"; the first because of {tally.lost[0]}" if tally.lost else ""
    counted = [
        Notice("sessions_given", "sessions in which something was said", tally.sessions_with_text),
        Notice("extraction_calls", "requests to the extracting model", record.chats),
        Notice("extraction_unusable", f"of these, replies that nothing could be taken from{first}", record.unusable),
        Notice("extraction_empty", "sessions of which nothing was stored", tally.empty),
        Notice("memories_stored", "facts and entities that are new", stored),
        Notice("memories_changed", "facts and entities that are no longer what they were", changed),
        Notice("memories_removed", "facts and entities that are gone", removed),
        Notice("sessions_failed", f"sessions of which nothing was kept{first}", tally.failed),
        Notice("episodes_lost", f"episodes of which nothing was kept{first}", len(tally.lost)),
    ]
    _log.info(
        "%d sessions, %d calls, %d stored, %d lost", tally.sessions_with_text, record.chats, stored, len(tally.lost)
    )
    return [notice for notice in counted if notice.count]
