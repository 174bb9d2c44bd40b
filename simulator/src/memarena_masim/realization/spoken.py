"""What an engine makes of a planned session: its turns in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """Words of one turn: who says it to whom (indices into the plan's speakers)."""

    speaker: int
    listener: int
    text: str
