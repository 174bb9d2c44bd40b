"""Implements the reference engine: the package rank-bm25 itself, which scores every passage in Python.

The option ``engine=reference`` chooses it, to compare a run with the fast engine (``okapi``), whose scores must be the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np

from memarena_backend_bm25.okapi import EPSILON, K1, B, Floats


class ReferenceMissingError(Exception):
    """The extra ``reference`` is not installed."""


class _Okapi(Protocol):
    def get_scores(self, query: Sequence[str]) -> Floats: ...


class ReferenceIndex:
    """Documents as rank-bm25 indexes them. Raises :class:`ReferenceMissingError` without the package."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        try:
            from rank_bm25 import BM25Okapi  # noqa: PLC0415 (an extra that most installations lack)
        except ImportError as error:
            raise ReferenceMissingError(
                "engine 'reference' needs the package rank-bm25: install memarena-backend-bm25[reference]"
            ) from error
        self._size = len(documents)
        # The package divides by the number of terms and documents, so that a corpus without words is beyond it.
        self._okapi = (
            cast(_Okapi, BM25Okapi(documents, k1=K1, b=B, epsilon=EPSILON)) if any(map(len, documents)) else None
        )

    def scores(self, query: Sequence[str]) -> Floats:
        """Score of every document, shape (documents,); all zero for a corpus without words."""
        return np.zeros(self._size) if self._okapi is None else self._okapi.get_scores(query)
