"""Measures BM25 recall at 10: the share of a question's evidence in BM25's top ten of the ego's turns up to its day.

The ranking is that of rank-bm25's ``BM25Okapi`` (k1 1.5, b 0.75, words in more than half of the turns weigh a quarter
of the mean weight), computed over sparse postings so that every question sees only what had been said by then.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World

K1, B, EPSILON = 1.5, 0.75, 0.25
TOP = 10


class Ranking:
    """BM25 over texts in a fixed order; each query ranks only the first ``count`` of them."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths: list[int] = []
        word_numbers: list[int] = []
        numbers: dict[str, int] = {}
        self._ends = [0]
        for index, tokens in enumerate(texts):
            lengths.append(len(tokens))
            for word, count in Counter(tokens).items():
                postings[word].append((index, count))
                word_numbers.append(numbers.setdefault(word, len(numbers)))
            self._ends.append(len(word_numbers))
        self._numbers = numbers
        self._word_numbers = np.array(word_numbers, dtype=np.int64)
        self._postings = {word: np.array(pairs, dtype=np.int64) for word, pairs in postings.items()}
        self._lengths = np.array(lengths, dtype=np.float64)

    def scores(self, query: Sequence[str], count: int) -> npt.NDArray[np.float64]:
        """Return the score of each of the first ``count`` texts; repeated words of the query count repeatedly."""
        scores = np.zeros(count)
        if not count:
            return scores
        frequencies = np.bincount(self._word_numbers[: self._ends[count]], minlength=len(self._numbers))
        present = frequencies[frequencies > 0]
        mean_weight = float(np.mean(np.log(count - present + 0.5) - np.log(present + 0.5))) if len(present) else 0.0
        mean_length = float(self._lengths[:count].mean())
        for word in query:
            postings = self._postings.get(word)
            if postings is None:
                continue
            postings = postings[postings[:, 0] < count]
            if not len(postings):
                continue
            weight = float(np.log(count - len(postings) + 0.5) - np.log(len(postings) + 0.5))
            weight = weight if weight >= 0 else EPSILON * mean_weight
            times = postings[:, 1].astype(np.float64)
            norm = K1 * (1 - B + B * self._lengths[postings[:, 0]] / mean_length)
            scores[postings[:, 0]] += weight * times * (K1 + 1) / (times + norm)
        return scores

    def top(self, query: Sequence[str], count: int) -> list[int]:
        """Return the indices of the ten best of the first ``count`` texts; ties in favour of the earlier."""
        scores = self.scores(query, count)
        return [int(index) for index in np.argsort(-scores, kind="stable")[:TOP]]


def recalls(worlds: Iterable[World]) -> dict[str, float]:
    """Return the mean share of a question's evidence turns among the top ten, by family."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for world in worlds:
        by_ego: defaultdict[str, list[int]] = defaultdict(list)
        for index, instance in enumerate(world.instances):
            if instance.evidence_turn_ids:
                by_ego[instance.ego_agent_id].append(index)
        for ego, indices in by_ego.items():
            turns = world.projections[ego]
            ranking = Ranking(words(turn.text) for turn in turns)
            for instance in (world.instances[index] for index in indices):
                # questions are asked at the end of their day: everything said on it is known
                asked_at = instance.query_timestamp
                until = world.day_count if asked_at is None else int(asked_at) + 1
                count = sum(1 for turn in turns if turn.timestamp < until)
                best = {turns[rank].turn_id for rank in ranking.top(words(instance.query), count)}
                evidence = set(instance.evidence_turn_ids)
                shares[instance.family.value].append(len(evidence & best) / len(evidence))
    return {family: statistics.fmean(values) for family, values in sorted(shares.items())}
