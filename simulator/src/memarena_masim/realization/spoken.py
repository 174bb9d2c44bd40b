"""Defines what an engine returns for a planned session: its turns in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """The text of one turn; ``speaker`` and ``listener`` are indices into the plan's speakers."""

    speaker: int
    listener: int
    text: str
