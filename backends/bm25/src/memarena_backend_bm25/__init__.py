"""BM25 memory backend: exact BM25Okapi over turns, from a precomputed sparse index."""

from memarena_backend_bm25.memory import Bm25Memory

__all__ = ["Bm25Memory"]
