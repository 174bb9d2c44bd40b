"""Defines the interface of a memory: the four methods that a backend implements. The kit does everything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from memarena_backend.calls import Call
from memarena_backend.records import Day, Description, Notice, Query, SearchResult


class Memory(ABC):
    """A memory of one person's life per namespace.

    The kit keeps every committed day on disk and decides which days count. So a memory may hold its index in RAM: after
    a restart, a failed commit or a cancelled call the kit calls :meth:`unload`, then :meth:`restore` with the committed
    days.

    Calls for different namespaces come from different threads at the same time. Within a namespace, ``commit_day``,
    ``restore``, ``unload`` and ``forget`` run alone; ``search`` only overlaps with other searches.

    A method that cannot do its job raises :class:`~memarena_backend.errors.CallError` if the contract has a code for
    the case, any other exception otherwise. It never returns an empty result instead.
    """

    @abstractmethod
    def describe(self) -> Description:
        """Return the name, version and abilities of this memory. They must not change while the process runs."""

    @abstractmethod
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        """Ingest a day and make it searchable before returning.

        The day becomes visible only after the kit has made it durable; until then no search runs in the namespace.
        """

    @abstractmethod
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        """Return the items for a question, best first. Never called for a namespace without a day.

        The result must respect ``query.max_items`` and ``query.max_context_tokens`` (see
        :mod:`memarena_backend.fitting`).
        """

    @abstractmethod
    def forget(self, namespace: str) -> None:
        """Delete everything held for the namespace; does nothing if the namespace is unknown."""

    def unload(self, namespace: str) -> None:
        """Drop the namespace because its content may differ from the committed days; :meth:`restore` follows.

        Override it if an index on disk can be repaired more cheaply than rebuilt. Unlike after :meth:`forget`, data may
        stay on disk.
        """
        self.forget(namespace)

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        """Make the namespace hold exactly its committed days, which come oldest first, after :meth:`unload`.

        Override it if ingesting many days at once is cheaper than one after the other.
        """
        for day in days:
            self.commit_day(namespace, day, call)

    def watch(self, serving: Callable[[bool], None]) -> None:  # noqa: B027 (optional hook)
        """Report when an underlying store fails (``serving(False)``) and when it is back, until :meth:`close`.

        ``serving`` may be called from any thread; in between, health is NOT_SERVING (HLT-2). The kit calls this method
        once, when the server starts to serve.
        """

    def close(self) -> None:  # noqa: B027 (optional hook)
        """Release what the memory holds when the server stops."""
