"""How long and how full a life is."""

from __future__ import annotations

from dataclasses import dataclass

from memarena.conformance.contract_limits import TURN_TEXT_BYTES


@dataclass(frozen=True)
class LifeSize:
    """How much happens in a life."""

    days: int = 112
    """Committed ones; day indices reach further."""
    long_turns: int = 2_000
    many: int = 64
    """Sessions of one day, and events of another."""
    per_group: int = 6
    """Things of most kinds."""
    asked: int = 2
    """Of a kind, at first; the others where these are missed."""
    text_bytes: int = TURN_TEXT_BYTES


THOROUGH = LifeSize(days=400, long_turns=8_000, many=400, per_group=12, asked=12)
