"""What all records of a log and their parts have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records and their parts: frozen, unknown fields forbidden."""

    model_config = ConfigDict(frozen=True, extra="forbid")
