"""What all records of a log and their parts have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records and their parts: frozen, unknown fields forbidden."""

    model_config = ConfigDict(frozen=True, extra="forbid")


PROMPT_NOT_UNDERSTOOD = "prompt_not_understood"
"""Error code of a reader without a model that finds no question or no context in a prompt."""
