# mypy: disable-error-code=import-not-found
# Graphiti is not installed where types are checked.
"""Imports Graphiti and Kuzu after their unwanted side effects are turned off. Other modules import them from here."""

from __future__ import annotations

from memarena_backend_graphiti import silence  # noqa: F401 (comes before what it silences)

# isort: split

import kuzu
from graphiti_core import Graphiti
from graphiti_core.cross_encoder import CrossEncoderClient
from graphiti_core.driver import kuzu_driver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder import EmbedderClient
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.graphiti_types import GraphitiClients
from graphiti_core.llm_client import LLMClient
from graphiti_core.nodes import EntityNode
from graphiti_core.search.search import search
from graphiti_core.search.search_config import (
    EdgeReranker,
    EdgeSearchConfig,
    EdgeSearchMethod,
    NodeReranker,
    NodeSearchConfig,
    NodeSearchMethod,
    SearchConfig,
    SearchResults,
)
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.tracer import NoOpTracer

__all__ = [
    "CrossEncoderClient",
    "EdgeReranker",
    "EdgeSearchConfig",
    "EdgeSearchMethod",
    "EmbedderClient",
    "EntityEdge",
    "EntityNode",
    "Graphiti",
    "GraphitiClients",
    "LLMClient",
    "NoOpTracer",
    "NodeReranker",
    "NodeSearchConfig",
    "NodeSearchMethod",
    "SearchConfig",
    "SearchFilters",
    "SearchResults",
    "get_fulltext_indices",
    "kuzu",
    "kuzu_driver",
    "search",
]
