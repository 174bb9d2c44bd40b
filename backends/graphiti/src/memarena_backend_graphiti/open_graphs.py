"""Keeps a limited number of committed graphs open for searches, since Kuzu takes some 70 MB for each."""

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
    """A loaded namespace: its folder, its graph (None while closed), and the number of searches that run on it."""

    folder: Path
    graph: Graph | None = None
    searches: int = 0


class OpenGraphs:
    """The graphs of loaded namespaces, opened when needed. Safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._mutex = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        """By namespace, least recently used first."""

    def hold(self, namespace: str, folder: Path) -> None:
        """Open the graph in a folder, which must not change until :meth:`let_go`."""
        with self._mutex:
            self._entries[namespace] = _Entry(folder)
            self._open(namespace)

    def let_go(self, namespace: str) -> None:
        """Close the graph of a namespace, in which no search may run; does nothing if it is not held."""
        with self._mutex:
            entry = self._entries.pop(namespace, None)
            if entry is not None and entry.graph is not None:
                entry.graph.close()

    def close(self) -> None:
        """Close the graphs of all namespaces."""
        for namespace in list(self._entries):
            self.let_go(namespace)

    @contextmanager
    def reading(self, namespace: str) -> Iterator[Graph]:
        """Yield the open graph of a held namespace, and keep it open for the length of a search."""
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
        """Return the open graph; close idle graphs of other namespaces if too many are open. Call it under the lock."""
        entry = self._entries.pop(namespace)
        self._entries[namespace] = entry
        if entry.graph is None:
            idle = [other for other in self._entries.values() if other.graph is not None and not other.searches]
            count = sum(other.graph is not None for other in self._entries.values())
            for other in idle[: max(0, count + 1 - self._settings.open_graphs)]:
                assert other.graph is not None
                other.graph.close()
                other.graph = None
            entry.graph = Graph(entry.folder, self._settings, read_only=True)
        return entry.graph
