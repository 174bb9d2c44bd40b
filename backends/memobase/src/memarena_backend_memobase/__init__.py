"""Memobase as a MemArena backend: an LLM extracts a profile and events, a Memobase server keeps and finds them."""

from memarena_backend_memobase.memory import MemobaseMemory

__all__ = ["MemobaseMemory"]
