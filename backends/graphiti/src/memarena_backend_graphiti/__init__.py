"""Graphiti memory backend: a knowledge graph that an LLM extracts, one embedded Kuzu database per namespace."""
