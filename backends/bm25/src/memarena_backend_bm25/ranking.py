"""The best documents by score, ties in the order in which they were said."""

from __future__ import annotations

import numpy as np

from memarena_backend_bm25.okapi import Floats, Ints


def best(scores: Floats, count: int) -> Ints:
    """Numbers of the ``count`` best documents, score descending, then number ascending; all if there are fewer.

    The score may be zero or negative: the ranking is that of the whole corpus, and a document without any word of the
    query still fills it up, as in the package rank-bm25.
    """
    count = min(count, len(scores))
    if count == 0:
        return np.empty(0, dtype=np.intp)
    threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
    above = np.flatnonzero(scores > threshold)
    above = above[np.argsort(-scores[above], kind="stable")]
    # Only ties at the threshold compete for what is left, and the earliest win.
    ties = np.flatnonzero(scores == threshold)[: count - len(above)]
    return np.concatenate([above, ties])
