"""What is held in memory for one namespace: passages, their words, their vectors, the names in them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from memarena_backend import Day, invalid_argument

from memarena_backend_bm25.entities import NameBook
from memarena_backend_bm25.okapi import Floats, Ints, OkapiCorpus, OkapiIndex
from memarena_backend_bm25.passages import Passage, passages_of
from memarena_backend_bm25.reference import ReferenceIndex, ReferenceMissingError
from memarena_backend_bm25.settings import PassageKind
from memarena_backend_bm25.vectors import Matrix


@dataclass(slots=True)
class Life:
    """One namespace. Passages are numbered from 0 in the order in which they were said."""

    kind: PassageKind = "turn"
    corpus: OkapiCorpus = field(default_factory=OkapiCorpus)
    passages: list[Passage] = field(default_factory=list)
    names: NameBook = field(default_factory=NameBook)
    index: OkapiIndex = field(default_factory=lambda: OkapiCorpus().index())
    said_at_s: Floats = field(default_factory=lambda: np.empty(0))
    """Seconds since 1970 of every passage."""
    sessions: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Number of every passage's session."""
    matrix: Matrix | None = None
    """Vectors of the passages, shape (passages, dimensions); None where none are kept."""
    model: str | None = None
    """What made the vectors."""
    reference: ReferenceIndex | None = None
    """Made by the first search that asks for it, dropped when a day is added."""
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def fresh(self, days: Iterable[Day]) -> list[Passage]:
        """Passages of days that come next, before they are taken in."""
        passages: list[Passage] = []
        session = len(self.names)
        for day in days:
            passages += passages_of(day, self.kind, session)
            session += len(day.sessions)
        return passages

    def add(self, days: Sequence[Day], fresh: Sequence[Passage]) -> None:
        """Take in days and the passages that :meth:`fresh` made of them."""
        self.corpus.add(passage.tokens() for passage in fresh)
        self.passages += fresh
        for day in days:
            self.names.add(day)
        self.index = self.corpus.index()
        self.said_at_s = np.array([passage.at.timestamp() for passage in self.passages])
        self.sessions = np.array([passage.session for passage in self.passages], dtype=np.intp)
        self.reference = None

    def reference_scores(self, tokens: Sequence[str]) -> Floats:
        """Scores by the package itself. Raises CallError INVALID_ARGUMENT where it is not installed."""
        with self.mutex:
            if self.reference is None:
                try:
                    self.reference = ReferenceIndex([passage.tokens() for passage in self.passages])
                except ReferenceMissingError as error:
                    raise invalid_argument("options", str(error)) from error
            reference = self.reference
        return reference.scores(tokens)
