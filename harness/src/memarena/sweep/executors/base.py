"""What a driver asks of the place where cells are carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memarena.sweep.placement import Node, Placed
from memarena.sweep.work import End, Job


@dataclass(frozen=True)
class Ended:
    """An attempt that ended. ``by_node``: its node is at fault (it is gone, or its disk is full)."""

    placed: Placed
    end: End
    by_node: bool = False


class Executor(Protocol):
    """Carries out cells on nodes. Where it ends, however it ends, everything that it started ends too."""

    def __enter__(self) -> object:
        """Begin. Raises SweepError with one line where that fails."""

    def __exit__(self, *_: object) -> None:
        """Let go of everything."""

    def nodes(self) -> Sequence[Node]:
        """The nodes that are there now."""

    def job(self, placed: Placed, last_attempt: bool) -> Job:
        """What a node is told about a cell."""

    def start(self, placed: Placed, job: Job) -> None:
        """Begin a cell. Raises nothing: what goes wrong is told by :meth:`ended`."""

    def ended(self, timeout_s: float) -> list[Ended]:
        """Attempts that ended since, after waiting for one at most so long."""

    def forget(self, placed: Placed, job: Job) -> None:
        """Remove what a sealed cell left on its node."""

    def release(self, placed: Placed) -> None:
        """Stop the reader that a cell shared on its node: no further cell there uses it."""

    def stop(self) -> None:
        """End every cell in order; their logs stay on their nodes."""

    def clean(self) -> None:
        """Remove what the sweep has left on the nodes, worlds too."""
