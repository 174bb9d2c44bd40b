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
class _Held:
    folder: Path
    graph: Graph | None = None
    searches: int = 0


class OpenGraphs:
    """The graph of each namespace that is held, opened when needed. Safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._mutex = threading.Lock()
        self._held: dict[str, _Held] = {}
        """By namespace, used last stands last."""

    def hold(self, namespace: str, folder: Path) -> None:
        """Open the graph in a folder, which must not change until it is let go."""
        with self._mutex:
            self._held[namespace] = _Held(folder)
            self._open(namespace)

    def let_go(self, namespace: str) -> None:
        """Close the graph of a namespace in which no search runs; one that is not held is fine."""
        with self._mutex:
            held = self._held.pop(namespace, None)
            if held is not None and held.graph is not None:
                held.graph.close()

    def close(self) -> None:
        """Let go of every namespace."""
        for namespace in list(self._held):
            self.let_go(namespace)

    @contextmanager
    def reading(self, namespace: str) -> Iterator[Graph]:
        """The open graph of a namespace that is held, for the length of a search."""
        with self._mutex:
            held = self._held[namespace]
            graph = self._open(namespace)
            held.searches += 1
        try:
            yield graph
        finally:
            with self._mutex:
                held.searches -= 1

    def _open(self, namespace: str) -> Graph:
        """The graph, open; another one that nobody reads is closed if there are too many. Under the lock."""
        held = self._held.pop(namespace)
        self._held[namespace] = held
        if held.graph is None:
            idle = [each for each in self._held.values() if each.graph is not None and not each.searches]
            count = sum(each.graph is not None for each in self._held.values())
            for each in idle[: max(0, count + 1 - self._settings.open_graphs)]:
                assert each.graph is not None
                each.graph.close()
                each.graph = None
            held.graph = Graph(held.folder, self._settings, read_only=True)
        return held.graph
