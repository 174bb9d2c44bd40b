"""Committed graphs that are open for searches: a few of them, since Kuzu takes some 70 MB for each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memarena_backend_graphiti.graph import Graph
from memarena_backend_graphiti.settings import Settings


@dataclass
class _Entry:
    folder: Path
    graph: Graph | None = None
    searches: int = 0


class OpenGraphs:
    """The graph of each namespace that is held, opened when needed. Safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._mutex = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        """By namespace, used last stands last."""

    def hold(self, namespace: str, folder: Path) -> None:
        """Open the graph in a folder, which must not change until it is let go."""
        with self._mutex:
            self._entries[namespace] = _Entry(folder)
            self._open(namespace)

    def let_go(self, namespace: str) -> None:
        """Close the graph of a namespace in which no search runs; one that is not held is fine."""
        with self._mutex:
            entry = self._entries.pop(namespace, None)
            if entry is not None and entry.graph is not None:
                entry.graph.close()

    def close(self) -> None:
        """Let go of every namespace."""
        for namespace in list(self._entries):
            self.let_go(namespace)

    @contextmanager
    def reading(self, namespace: str) -> Iterator[Graph]:
        """The open graph of a namespace that is held, for the length of a search."""
        with self._mutex:
            entry = self._entries[namespace]
            graph = self._open(namespace)
            entry.searches += 1
        try:
            yield graph
        finally:
            with self._mutex:
                entry.searches -= 1

    def _open(self, namespace: str) -> Graph:
        """The graph, open; another one that nobody reads is closed if there are too many. Under the lock."""
        entry = self._entries.pop(namespace)
        self._entries[namespace] = entry
        if entry.graph is None:
            idle = [each for each in self._entries.values() if each.graph is not None and not each.searches]
            count = sum(each.graph is not None for each in self._entries.values())
            for each in idle[: max(0, count + 1 - self._settings.open_graphs)]:
                assert each.graph is not None
                each.graph.close()
                each.graph = None
            entry.graph = Graph(entry.folder, self._settings, read_only=True)
        return entry.graph
