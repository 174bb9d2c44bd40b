"""Measures how well the words of questions alone predict a label: naive Bayes, cross-validated by groups.

If they predict whether a permission question is to be refused, a backend can score without any memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from hashlib import blake2b

FOLDS = 5


def auc_of_words(texts: Sequence[frozenset[str]], groups: Sequence[Hashable], positive: Sequence[bool]) -> float:
    """Return the area under the ROC curve of naive Bayes on words (Laplace-smoothed), cross-validated over ``groups``.

    Texts of one group never stand on both sides; which fifth a group falls in depends on nothing but itself. Folds
    are compared only with themselves, since their scores have different scales. Both classes must be there.
    """
    # Not hash(), whose results differ from process to process.
    folds = [int.from_bytes(blake2b(repr(group).encode(), digest_size=4).digest()) % FOLDS for group in groups]
    won, compared = 0.0, 0
    for fold in range(FOLDS):
        training = [index for index, text_fold in enumerate(folds) if text_fold != fold]
        scored = [index for index, text_fold in enumerate(folds) if text_fold == fold]
        weights, prior = _weights([texts[index] for index in training], [positive[index] for index in training])
        scores = {index: prior + sum(weights.get(word, 0.0) for word in sorted(texts[index])) for index in scored}
        for positive_index in (index for index in scored if positive[index]):
            for negative_index in (index for index in scored if not positive[index]):
                won += (
                    0.5
                    if scores[positive_index] == scores[negative_index]
                    else float(scores[positive_index] > scores[negative_index])
                )
                compared += 1
    return won / compared if compared else 0.5


def _weights(texts: Sequence[frozenset[str]], positive: Sequence[bool]) -> tuple[dict[str, float], float]:
    """Return the log ratio of each word's share among positives and negatives, and that of the classes."""
    # Laplace: a text more with the word and a text more without it, for each class.
    yes, no = sum(positive) + 2, len(positive) - sum(positive) + 2
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for words, is_positive in zip(texts, positive, strict=True):
        counts[is_positive].update(words)
    vocabulary = counts[True].keys() | counts[False].keys()
    ratios = {
        word: math.log((counts[True][word] + 1) / yes) - math.log((counts[False][word] + 1) / no) for word in vocabulary
    }
    return ratios, math.log(yes / no)


def standard_error(auc: float, positive: int, negative: int) -> float:
    """Return the standard error of an AUC (0 to 1), with at least 1 item per class (Hanley and McNeil 1982)."""
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    spread = auc * (1 - auc) + (positive - 1) * (q1 - auc * auc) + (negative - 1) * (q2 - auc * auc)
    return math.sqrt(spread / (positive * negative))
