"""Defines the deadlines of calls to a backend, and their budgets for model calls: fields of a run's configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Seconds = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
"""Bounded to eleven days, as gRPC cannot represent much longer deadlines."""


class DeadlineConfig(BaseModel):
    """Seconds that each kind of call to a backend may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    describe: _Seconds = 10.0
    ingest: _Seconds = 600.0
    search: _Seconds = 30.0
    answer: _Seconds = 600.0
    reset: _Seconds = 60.0
    health: _Seconds = 60.0


class BudgetConfig(BaseModel):
    """What one call to a backend may spend on models: calls, and tokens read and written. None: as much as it likes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
