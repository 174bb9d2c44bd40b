"""Graphiti memory backend: a knowledge graph that an LLM extracts, one embedded Kuzu database per namespace."""

from memarena_backend_graphiti.memory import GraphitiMemory

__all__ = ["GraphitiMemory"]
