"""Graphiti and Kuzu, imported once what they do unasked is switched off.

Graphiti reports every start to a telemetry service and keeps an id for that in the home folder, and it reads a file
``.env`` of whatever folder it is started in or below.
"""

from __future__ import annotations

import logging
import os
import warnings

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
os.environ["PYTHON_DOTENV_DISABLED"] = "1"
# Graphiti 0.31 says so with every database that it opens; README says what it means.
warnings.filterwarnings("ignore", message="The Kuzu backend is deprecated", category=DeprecationWarning)
logging.getLogger("graphiti_core").setLevel(logging.WARNING)

import kuzu  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core import Graphiti  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.cross_encoder import CrossEncoderClient  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.driver import kuzu_driver  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.edges import EntityEdge  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.embedder import EmbedderClient  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.graph_queries import get_fulltext_indices  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.graphiti_types import GraphitiClients  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.llm_client import LLMClient  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.nodes import EntityNode  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.search.search import search  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.search.search_config import (  # type: ignore[import-not-found]  # noqa: E402
    EdgeReranker,
    EdgeSearchConfig,
    EdgeSearchMethod,
    NodeReranker,
    NodeSearchConfig,
    NodeSearchMethod,
    SearchConfig,
    SearchResults,
)
from graphiti_core.search.search_filters import SearchFilters  # type: ignore[import-not-found]  # noqa: E402
from graphiti_core.tracer import NoOpTracer  # type: ignore[import-not-found]  # noqa: E402

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
