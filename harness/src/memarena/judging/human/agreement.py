"""Computes agreement between raters: Cohen's κ, Fleiss' κ, the majority of three. Pure.

Cohen, J. (1960), A coefficient of agreement for nominal scales. Fleiss, J. L. (1971), Measuring nominal scale agreement
among many raters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def cohen_kappa(labels: Sequence[str], other_labels: Sequence[str]) -> float | None:
    """Return Cohen's κ of two raters over the same items.

    None if it is not defined: without items, or if both raters use the same single label throughout, so that chance
    alone explains their agreement. Raises ValueError if the lengths differ.
    """
    if len(labels) != len(other_labels):
        raise ValueError(f"expected two lists of one length, got {len(labels)} and {len(other_labels)}")
    if not labels:
        return None
    n = len(labels)
    first, second = Counter(labels), Counter(other_labels)
    observed = sum(a == b for a, b in zip(labels, other_labels, strict=True)) / n
    expected = sum(first[label] * second[label] for label in first) / (n * n)
    return None if expected == 1 else (observed - expected) / (1 - expected)


def fleiss_kappa(items: Sequence[Sequence[str]]) -> float | None:
    """Return Fleiss' κ. Each item is the sequence of the labels that it got, one label per rater.

    None if it is not defined: no items, fewer than two raters, or one label throughout. Raises ValueError if items have
    different numbers of labels.
    """
    if not items:
        return None
    raters = len(items[0])
    if any(len(labels) != raters for labels in items):
        raise ValueError("expected the same number of labels for every item")
    if raters < 2:
        return None
    counts = [Counter(labels) for labels in items]
    total = sum(counts, Counter[str]())
    within = sum((sum(c * c for c in count.values()) - raters) / (raters * (raters - 1)) for count in counts)
    observed = within / len(items)
    expected = sum((c / (raters * len(items))) ** 2 for c in total.values())
    return None if expected == 1 else (observed - expected) / (1 - expected)


def majority(labels: Sequence[str]) -> str | None:
    """Return the label that more than half of the raters gave; None if there is none."""
    if not labels:
        return None
    label, count = Counter(labels).most_common(1)[0]
    return label if count * 2 > len(labels) else None
