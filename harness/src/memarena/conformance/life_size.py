"""Defines the size of a life: the simulated history of one namespace that the suite ingests."""

from __future__ import annotations

from dataclasses import dataclass

from memarena.conformance.contract_limits import TURN_TEXT_BYTES


@dataclass(frozen=True)
class LifeSize:
    """Number of days, turns and other parts of a life."""

    days: int = 112
    """Number of committed days; as there are gaps, day indices reach further."""
    long_turns: int = 2_000
    many: int = 64
    """Number of sessions of one day, and of events of another."""
    per_group: int = 6
    """Number of facts in most groups."""
    asked: int = 2
    """Number of facts of a group that are asked for first; others are asked for if these are missed."""
    text_bytes: int = TURN_TEXT_BYTES


THOROUGH = LifeSize(days=400, long_turns=8_000, many=400, per_group=12, asked=12)
