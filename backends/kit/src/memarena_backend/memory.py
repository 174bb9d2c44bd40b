"""What a memory is: the four methods that a backend implements; everything else is the kit's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from memarena_backend.calls import Call
from memarena_backend.records import Day, Description, Notice, Query, SearchResult


class Memory(ABC):
    """A memory of one person's life per namespace.

    The kit keeps every committed day on disk and is the one that knows which days count. So a memory may hold its index
    in RAM: after a restart, a failed commit or a cancelled call the kit calls :meth:`unload` and gives it the committed
    days again through :meth:`restore`.

    Calls for different namespaces come from different threads at the same time. Within a namespace, ``commit_day``,
    ``restore``, ``unload`` and ``forget`` run alone; ``search`` runs beside other searches only.

    A method that cannot do its job raises: :class:`~memarena_backend.errors.CallError` where the contract has a code
    for it, anything else otherwise. It never returns an empty result instead.
    """

    @abstractmethod
    def describe(self) -> Description:
        """Who this memory is and what it can do. Must not change while the process lives."""

    @abstractmethod
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        """Take in a day and make it searchable before returning.

        The day becomes visible only after the kit has made it durable; until then no search runs in the namespace.
        """

    @abstractmethod
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        """Find what the memory holds for a question, best first. Never called for a namespace without a day.

        The result respects ``query.max_items`` and ``query.max_context_tokens`` (see :mod:`memarena_backend.fitting`).
        """

    @abstractmethod
    def forget(self, namespace: str) -> None:
        """Drop everything held for the namespace; one that was never seen is fine."""

    def unload(self, namespace: str) -> None:
        """Let go of the namespace because what is held may differ from what is committed; :meth:`restore` follows.

        Override it where an index on disk can be put right more cheaply than made again. Unlike after :meth:`forget`,
        something may stay on disk.
        """
        self.forget(namespace)

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        """Make the namespace hold exactly its committed days, given oldest first, after :meth:`unload`.

        Override it where taking in many days at once is cheaper than one after the other.
        """
        for day in days:
            self.commit_day(namespace, day, call)

    def watch(self, serving: Callable[[bool], None]) -> None:  # noqa: B027 (optional hook)
        """Call ``serving`` from any thread when a store beneath goes away (False) or comes back, until :meth:`close`.

        Health is NOT_SERVING meanwhile (HLT-2). Called once, when the server serves.
        """

    def close(self) -> None:  # noqa: B027 (optional hook)
        """Release what the memory holds when the server stops."""
