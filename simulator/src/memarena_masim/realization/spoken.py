"""Defines what an engine returns for a planned session: its turns in words.

Both engines, from the phrase banks and with a model, return the same record, of which ``corpus_lines.py`` makes rows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """The text of one turn; ``speaker`` and ``listener`` are indices into the plan's speakers."""

    speaker: int
    listener: int
    text: str
