"""Defines the interface between a sweep's driver and the machines that run its cells."""

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
    """Runs cells on nodes. When it ends, for whatever cause, everything that it started ends too."""

    def __enter__(self) -> object:
        """Begin. Raises SweepError with one line if it fails."""

    def __exit__(self, *_: object) -> None:
        """Release all nodes."""

    def nodes(self) -> Sequence[Node]:
        """Return the nodes that are available now."""

    def job(self, placed: Placed, last_attempt: bool) -> Job:
        """Return the instructions to a node for a cell."""

    def start(self, placed: Placed, job: Job) -> None:
        """Begin a cell. Raises nothing: :meth:`ended` reports a failure."""

    def ended(self, timeout_s: float) -> list[Ended]:
        """Return the attempts that ended since the last call; wait at most ``timeout_s`` for the first."""

    def forget(self, placed: Placed, job: Job) -> None:
        """Remove a sealed cell's files from its node."""

    def release(self, placed: Placed) -> None:
        """Stop the reader that a cell shared on its node: no further cell there uses it."""

    def stop(self) -> None:
        """End every cell in order; their logs stay on their nodes."""

    def clean(self) -> None:
        """Remove the sweep's files from the nodes, including worlds."""
