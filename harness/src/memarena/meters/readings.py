"""Defines a meter's reading: a value with channel and unit, or the reason why there is none; never 0 for missing.

A 0 for a sensor that failed would become energy that a backend seems to save.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.errors import MemArenaError


class MeterError(MemArenaError):
    """A meter, its settings or its file cannot be used; the message is one line for the user."""


class SamplesError(MeterError):
    """A samples file cannot be read or written; ``reason`` says why, without the path."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class MeterFailedError(MeterError):
    """A meter that worked cannot be read any more: it is not read again, and phases that needed it are void."""


def one_line(text: object) -> str:
    """Return a reason as one line; for an exception without a message, its type."""
    return " ".join(str(text).split()) or type(text).__name__


@dataclass(frozen=True)
class Channel:
    """A quantity that a meter reads.

    ``unit`` is a symbol: W, J (a counter that only grows), °C, %, MHz, V, A, B (bytes), s (a counter that only grows).
    """

    name: str
    unit: str

    def __post_init__(self) -> None:
        """Raise :class:`MeterError` for a name or unit that the samples file cannot hold."""
        for text in (self.name, self.unit):
            if not text or text != one_line(text):
                raise MeterError(f"channel {self.name!r} in {self.unit!r}: name and unit must be words on one line")


@dataclass(frozen=True)
class Unavailable:
    """A channel that this machine does not have, or a reading that failed, with the reason."""

    channel: Channel
    reason: str


@dataclass(frozen=True)
class Reading:
    """A value of a channel, in the channel's unit; finite."""

    channel: Channel
    value: float


def reading(channel: Channel, value: float) -> Reading | Unavailable:
    """Return a reading, or unavailable if the value is not finite."""
    if math.isfinite(value):
        return Reading(channel, float(value))
    return Unavailable(channel, f"the meter gave {value}")
