"""Declares the options of a search and runs its steps, from a question to the items that are returned.

The steps, of which options turn on all but the second: drop sessions that mention none of the question's names; score
passages by words, by vectors or by both; prefer recent passages; rank the best again with a cross-encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from memarena_backend import Item, Notice, OptionSpec, Query

from memarena_backend_bm25.namespace_index import NamespaceIndex
from memarena_backend_bm25.okapi import Floats, Ints
from memarena_backend_bm25.passages import tokenize
from memarena_backend_bm25.ranking import best, fused, with_recency

ENGINES = ("fast", "reference")
RETRIEVALS = ("bm25", "dense", "rrf")
SWITCH = ("off", "on")
MOST_RECENCY = 100.0
"""Largest weight that the option `recency` accepts."""

OPTIONS = (
    OptionSpec("depth", "How many of the best are joined by rrf or given to the reranker, at least 1.", "20"),
    OptionSpec("engine", "Which implementation scores words: fast (sparse index) or reference (rank-bm25).", "fast"),
    OptionSpec("entities", "on: only sessions that mention a person, place or group of the question.", "off"),
    OptionSpec("headers", "on: every item opens with conversation, day, speaker and time.", "off"),
    OptionSpec("k", "How many items are returned at most, an integer of at least 1.", "10"),
    OptionSpec("recency", "Weight of recency next to scores brought to 0…1; 0 leaves it out.", "0"),
    OptionSpec("rerank", "on: the best are ranked once more by a cross-encoder.", "off"),
)
VECTOR_OPTION = OptionSpec("retrieval", "bm25 (words), dense (vectors) or rrf (both, by reciprocal rank).", "bm25")
"""Declared only if vectors are kept (BM25_VECTORS); otherwise a run that sets it is refused before it begins."""


class Models(Protocol):
    """The models that a search may need, bound to one call. Both raise CallError."""

    def similarities(self, index: NamespaceIndex, question: str) -> Floats:
        """Return the cosine of the question with each passage, shape (passages,)."""
        ...

    def relevance(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers the question, as scored by a cross-encoder; higher is better."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """The parsed options of one search. See `OPTIONS` for their meaning."""

    count: int
    depth: int
    engine: str
    retrieval: str
    entities: bool
    headers: bool
    recency: float
    rerank: bool


def plan_of(query: Query) -> Plan:
    """Parse the options of a query. Raises CallError INVALID_ARGUMENT that names the bad option."""
    count = query.int_option("k", minimum=1)
    if query.max_items is not None:
        count = min(count, query.max_items)
    has_vectors = VECTOR_OPTION.key in query.options
    return Plan(
        count=count,
        depth=max(count, query.int_option("depth", minimum=1)),
        engine=query.choice_option("engine", ENGINES),
        retrieval=query.choice_option(VECTOR_OPTION.key, RETRIEVALS) if has_vectors else "bm25",
        entities=query.choice_option("entities", SWITCH) == "on",
        headers=query.choice_option("headers", SWITCH) == "on",
        recency=query.float_option("recency", 0.0, MOST_RECENCY),
        rerank=query.choice_option("rerank", SWITCH) == "on",
    )


def find(index: NamespaceIndex, query: Query, plan: Plan, models: Models) -> tuple[list[Item], list[Notice]]:
    """Return the items in rank order, at most ``plan.count``, and the notices of the search."""
    notices: list[Notice] = []
    allowed = _allowed(index, query.text, notices) if plan.entities else None
    scores = _scores(index, query, plan, models, allowed)
    if plan.recency:
        ages_s = query.asked_at.timestamp() - _select(index.said_at_s, allowed)
        scores = with_recency(scores, ages_s, plan.recency)
    chosen = best(scores, plan.depth if plan.rerank else plan.count)
    values = scores[chosen]
    indices = chosen if allowed is None else allowed[chosen]  # of passages in the namespace
    if plan.rerank:
        texts = [index.passages[number].text for number in indices.tolist()]
        values = np.array(models.relevance(query.text, texts))
        order = best(values, plan.count)
        indices, values = indices[order], values[order]
    pairs = zip(indices.tolist(), values.tolist(), strict=True)
    return [_item(index, number, score, headers=plan.headers) for number, score in pairs], notices


def _allowed(index: NamespaceIndex, question: str, notices: list[Notice]) -> Ints | None:
    """Return the indices of the passages that the name filter keeps; None, with a notice, if it does not apply."""
    names = index.names.mentioned(question)
    if not names:
        notices.append(Notice("no_entities", "the question names nobody and nothing known: nothing was left out"))
        return None
    # A known name occurs in at least one session, so at least one passage remains.
    return np.flatnonzero(index.names.sessions_with(names)[index.sessions])


def _scores(index: NamespaceIndex, query: Query, plan: Plan, models: Models, allowed: Ints | None) -> Floats:
    """Return the scores of the allowed passages by words, by vectors, or by both fused."""
    scorings: list[Floats] = []
    if plan.retrieval in {"bm25", "rrf"}:
        tokens = tokenize(query.text)
        words = index.okapi.scores(tokens) if plan.engine == "fast" else index.reference_scores(tokens)
        scorings.append(_select(words, allowed))
    if plan.retrieval in {"dense", "rrf"}:
        scorings.append(_select(models.similarities(index, query.text), allowed))
    return scorings[0] if len(scorings) == 1 else fused(scorings, plan.depth)


def _select(values: Floats, allowed: Ints | None) -> Floats:
    """Return the values of the allowed passages; all of them if ``allowed`` is None."""
    return values if allowed is None else values[allowed]


def _item(index: NamespaceIndex, number: int, score: float, *, headers: bool) -> Item:
    passage = index.passages[number]
    text = f"{passage.header}\n{passage.text}" if headers else passage.text
    return Item(text, score, passage.session_ids, passage.turn_ids, passage.at_text)
