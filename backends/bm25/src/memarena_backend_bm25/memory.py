"""BM25 over turns: keyword search that keeps every word and needs no model."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    Item,
    Memory,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    SearchResult,
    fit_ranked,
    invalid_argument,
)

from memarena_backend_bm25.okapi import Floats, OkapiCorpus, OkapiIndex
from memarena_backend_bm25.passages import Passage, passages_of, tokenize
from memarena_backend_bm25.ranking import best
from memarena_backend_bm25.reference import ReferenceIndex, ReferenceMissingError

ENGINES = ("fast", "reference")

_OPTIONS = (
    OptionSpec("engine", "Which implementation scores: fast (sparse index) or reference (rank-bm25 itself).", "fast"),
    OptionSpec("k", "How many items are returned at most, an integer of at least 1.", "10"),
)


@dataclass(slots=True)
class _Life:
    """What is held for one namespace."""

    corpus: OkapiCorpus = field(default_factory=OkapiCorpus)
    passages: list[Passage] = field(default_factory=list)
    index: OkapiIndex = field(default_factory=lambda: OkapiCorpus().index())
    reference: ReferenceIndex | None = None
    """Made by the first search that asks for it, dropped when a day is added."""

    def add(self, days: Iterable[Day]) -> None:
        for day in days:
            fresh = list(passages_of(day))
            self.corpus.add(passage.tokens() for passage in fresh)
            self.passages += fresh
        self.index = self.corpus.index()
        self.reference = None


class Bm25Memory(Memory):
    """Ranks the turns of a namespace by BM25Okapi. Events are not indexed."""

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}
        self._building = threading.Lock()

    def describe(self) -> Description:
        return Description(
            name="bm25",
            version=version("memarena-backend-bm25"),
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        self._lives.setdefault(namespace, _Life()).add((day,))
        return ()

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        self._lives.setdefault(namespace, _Life()).add(days)

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        life = self._lives[namespace]
        count = query.int_option("k", minimum=1)
        if query.max_items is not None:
            count = min(count, query.max_items)
        tokens = tokenize(query.text)
        if query.choice_option("engine", ENGINES) == "fast":
            scores = life.index.scores(tokens)
        else:
            scores = self._reference_scores(life, tokens)
        items = [_item(life.passages[number], scores[number]) for number in best(scores, count).tolist()]
        return fit_ranked(items, None, query.max_context_tokens)

    def forget(self, namespace: str) -> None:
        self._lives.pop(namespace, None)

    def _reference_scores(self, life: _Life, tokens: Sequence[str]) -> Floats:
        with self._building:
            if life.reference is None:
                try:
                    life.reference = ReferenceIndex([passage.tokens() for passage in life.passages])
                except ReferenceMissingError as error:
                    raise invalid_argument("options", str(error)) from error
            reference = life.reference
        return reference.scores(tokens)


def _item(passage: Passage, score: float) -> Item:
    return Item(passage.text, float(score), passage.session_ids, passage.turn_ids, passage.time)
