"""Mem0 as a MemArena backend: facts that an LLM extracts, or turns as they were said, in an embedded Qdrant."""

from memarena_backend_mem0.memory import Mem0Memory

__all__ = ["Mem0Memory"]
