"""Holds the index of one namespace in RAM: its passages with their words, vectors and names."""

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
class NamespaceIndex:
    """The search index of a namespace. Arrays are by passage, in the order of ingestion."""

    kind: PassageKind = "turn"
    corpus: OkapiCorpus = field(default_factory=OkapiCorpus)
    passages: list[Passage] = field(default_factory=list)
    names: NameBook = field(default_factory=NameBook)
    okapi: OkapiIndex = field(default_factory=lambda: OkapiCorpus().index())
    said_at_s: Floats = field(default_factory=lambda: np.empty(0))
    """Time of each passage in seconds since 1970, shape (passages,)."""
    sessions: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Index of each passage's session, shape (passages,)."""
    matrix: Matrix | None = None
    """Vectors of the passages, shape (passages, dimensions); None if the settings keep no vectors."""
    model: str | None = None
    """Name of the model that made the vectors; None if there are none."""
    reference: ReferenceIndex | None = None
    """The index of rank-bm25: built by the first search with ``engine=reference``, dropped when a day is added."""
    mutex: threading.Lock = field(default_factory=threading.Lock)
    """Guards ``reference``."""

    def passages_of_days(self, days: Iterable[Day]) -> list[Passage]:
        """Return the passages of the next days without adding them."""
        passages: list[Passage] = []
        session = len(self.names)
        for day in days:
            passages += passages_of(day, self.kind, session)
            session += len(day.sessions)
        return passages

    def add(self, days: Sequence[Day], passages: Sequence[Passage]) -> None:
        """Add days and the passages that :meth:`passages_of_days` returned for them."""
        self.corpus.add(passage.tokens() for passage in passages)
        self.passages += passages
        for day in days:
            self.names.add(day)
        self.okapi = self.corpus.index()
        self.said_at_s = np.array([passage.at.timestamp() for passage in self.passages])
        self.sessions = np.array([passage.session for passage in self.passages], dtype=np.intp)
        self.reference = None

    def reference_scores(self, tokens: Sequence[str]) -> Floats:
        """Return the scores that the package rank-bm25 computes, shape (passages,).

        Raises CallError INVALID_ARGUMENT if the package is not installed.
        """
        with self.mutex:
            if self.reference is None:
                try:
                    self.reference = ReferenceIndex([passage.tokens() for passage in self.passages])
                except ReferenceMissingError as error:
                    raise invalid_argument("options", str(error)) from error
            reference = self.reference
        return reference.scores(tokens)
