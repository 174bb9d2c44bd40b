"""Defines the size limits of the contract (SPEC.md LIM-1)."""

from __future__ import annotations

FRAME_BYTES = 1024 * 1024
RESPONSE_BYTES = 4 * 1024 * 1024
TURN_TEXT_BYTES = 256 * 1024
QUERY_TEXT_BYTES = 64 * 1024
ID_BYTES = 128
