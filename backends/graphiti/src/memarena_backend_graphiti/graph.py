"""Opens the graph of one namespace: adds episodes, and searches facts and entities with the sessions they come from."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memarena_backend import failed_precondition

from memarena_backend_graphiti.database import Driver
from memarena_backend_graphiti.episodes import Episode, Source
from memarena_backend_graphiti.items import GraphMatch
from memarena_backend_graphiti.library import (
    EdgeReranker,
    EdgeSearchConfig,
    EdgeSearchMethod,
    Graphiti,
    GraphitiClients,
    NodeReranker,
    NodeSearchConfig,
    NodeSearchMethod,
    NoOpTracer,
    SearchConfig,
    SearchFilters,
    search,
)
from memarena_backend_graphiti.models import (
    CallEmbedder,
    CallModels,
    Extractor,
    NoChat,
    NoEmbedder,
    NoReranker,
)
from memarena_backend_graphiti.settings import Settings

_log = logging.getLogger(__name__)

NOTE_NAME = "embedder.json"
KEYWORD_LIMIT_WORDS = 100
"""Words of a question for keyword search: with more than 128 Graphiti over Kuzu returns nothing."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The options of a search: at most how many facts and entities, and the least cosine similarity of matches."""

    facts: int
    entities: int
    similarity: float


class Graph:
    """An open graph. Searches may overlap; all other methods must run alone."""

    def __init__(self, folder: Path, settings: Settings, *, read_only: bool) -> None:
        self._folder = folder
        self._settings = settings
        self._driver = Driver(folder, settings.buffer_pool_mb, read_only=read_only)
        # Read once, so that a search need not query the sources.
        self._episodes = {
            str(uuid): Source.from_json(name)
            for uuid, name in self._driver.rows("MATCH (e:Episodic) RETURN e.uuid, e.name ORDER BY e.created_at")
        }
        self._mentions: dict[str, list[str]] = {}
        for entity, episode in self._driver.rows("MATCH (e:Episodic)-[:MENTIONS]->(n:Entity) RETURN n.uuid, e.uuid"):
            self._mentions.setdefault(entity, []).append(episode)

    def close(self) -> None:
        """Close the database."""
        self._driver.shut()

    @property
    def is_empty(self) -> bool:
        """Whether there is no entity to find."""
        return not self._mentions

    def holding(self) -> Mapping[str, tuple[object, ...]]:
        """Return all facts and entities by id, each with the values that may change; compare two to see changes."""
        facts = self._driver.rows(
            "MATCH (e:RelatesToNode_) RETURN e.uuid, e.fact, e.episodes, e.valid_at, e.invalid_at, e.expired_at"
        )
        entities = self._driver.rows("MATCH (n:Entity) RETURN n.uuid, n.name, n.summary")
        return {uuid: tuple(map(str, values)) for uuid, *values in (*facts, *entities)}

    # -------------------------------------------------------------- a day

    def add(self, episodes: Iterable[Episode], models: CallModels) -> tuple[int, list[str]]:
        """Add episodes one after the other; return how many stored something, and why others were lost.

        Raises CallError if a model fails, or the error of the database; the folder must then be discarded.
        """
        self._expect_embedder(models)
        settings = self._settings
        graphiti = Graphiti(
            graph_driver=self._driver,
            llm_client=Extractor(models, settings.response_format, settings.reply_tokens),
            embedder=CallEmbedder(models),
            cross_encoder=NoReranker(),
        )
        fruitful, lost = 0, []
        for episode in episodes:
            failure: Exception | None = None
            try:
                fruitful += self._add(graphiti, episode)
            except Exception as error:  # noqa: BLE001 (the library does not say what it raises on an odd reply)
                failure = error
            # Errors of models and database end the day, whether the library swallowed or raised them; any other error
            # is caused by the reply and loses only this episode.
            models.record.check()
            if self._driver.fault is not None:
                raise self._driver.fault
            if failure is not None:
                lost.append(f"{type(failure).__name__}: {' '.join(str(failure).split())[:200]}")
                _log.warning("an episode of session %s is lost: %s", episode.source.session_id, lost[-1])
        return fruitful, lost

    def _add(self, graphiti: Graphiti, episode: Episode) -> bool:
        """Add an episode and record its sources; return whether any entity or fact was extracted."""
        before = list(self._episodes)
        previous = before[-self._settings.previous_episodes :] if self._settings.previous_episodes else []
        added = asyncio.run(
            graphiti.add_episode(
                name=episode.source.to_json(),
                episode_body=episode.text,
                source_description="a conversation",
                # Kuzu drops the offset of a time, and Graphiti reads what comes back as UTC.
                reference_time=episode.said_at.astimezone(UTC),
                group_id=Driver.GROUP,
                previous_episode_uuids=previous,
            )
        )
        self._episodes[added.episode.uuid] = episode.source
        for edge in added.episodic_edges:
            self._mentions.setdefault(edge.target_node_uuid, []).append(edge.source_node_uuid)
        return bool(added.nodes or added.edges)

    # -------------------------------------------------------------- a question

    def search(self, text: str, plan: SearchPlan, models: CallModels) -> list[GraphMatch]:
        """Return facts and entities for a question by descending score. Raises CallError if the embedder fails."""
        if self.is_empty or not text.strip():
            return []
        self._expect_embedder(models)
        vector = models.embed([text], "query")[0]
        clients = GraphitiClients(
            driver=self._driver,
            llm_client=NoChat(None),
            embedder=NoEmbedder(),
            cross_encoder=NoReranker(),
            tracer=NoOpTracer(),
        )
        words = " ".join(text.split()[:KEYWORD_LIMIT_WORDS])
        results = asyncio.run(
            search(clients, words, [Driver.GROUP], _recipe(plan), SearchFilters(), query_vector=vector)
        )
        matches = [
            GraphMatch(edge.fact, score, self._sources(edge.episodes), _utc(edge.valid_at), _utc(edge.invalid_at))
            for edge, score in list(zip(results.edges, results.edge_reranker_scores, strict=True))[: plan.facts]
        ]
        matches += [
            GraphMatch(f"{node.name}: {node.summary}", score, self._sources(self._mentions.get(node.uuid, ())))
            for node, score in list(zip(results.nodes, results.node_reranker_scores, strict=True))[: plan.entities]
            if node.summary.strip()
        ]
        return sorted(matches, key=lambda each: -each.score)

    def _sources(self, episodes: Iterable[str]) -> tuple[Source, ...]:
        return tuple(self._episodes[episode] for episode in episodes)

    # -------------------------------------------------------------- the embedder that it was made with

    def _expect_embedder(self, models: CallModels) -> None:
        """Record the embedder of the graph. Raises CallError FAILED_PRECONDITION if another one made its vectors."""
        note = self._folder / NOTE_NAME
        if not note.is_file():
            note.write_text(json.dumps({"model": models.embedder.model}), encoding="utf-8")
        made_with = json.loads(note.read_text(encoding="utf-8"))["model"]
        if made_with != models.embedder.model:
            raise failed_precondition(
                f"the namespace was embedded with {made_with}, at hand is {models.embedder.model}: "
                "Reset the namespace and ingest it again"
            )


def _recipe(plan: SearchPlan) -> SearchConfig:
    """Return the library's hybrid search with reciprocal rank fusion, which needs one vector and no cross-encoder."""
    edges = EdgeSearchConfig(
        search_methods=[EdgeSearchMethod.bm25, EdgeSearchMethod.cosine_similarity],
        reranker=EdgeReranker.rrf,
        sim_min_score=plan.similarity,
    )
    nodes = NodeSearchConfig(
        search_methods=[NodeSearchMethod.bm25, NodeSearchMethod.cosine_similarity],
        reranker=NodeReranker.rrf,
        sim_min_score=plan.similarity,
    )
    return SearchConfig(
        edge_config=edges if plan.facts else None,
        node_config=nodes if plan.entities else None,
        limit=max(plan.facts, plan.entities),
    )


def _utc(at: datetime | None) -> datetime | None:
    """Return a time of Kuzu, which stores no UTC offset, as a time in UTC."""
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)
