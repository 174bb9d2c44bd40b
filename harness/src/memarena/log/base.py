"""Defines the base of all records of a log and of their parts, and a code that several packages share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records and their parts: frozen, unknown fields forbidden."""

    model_config = ConfigDict(frozen=True, extra="forbid")


PROMPT_NOT_UNDERSTOOD = "prompt_not_understood"
"""Error code of a reader without a model that finds no question or no context in a prompt."""
