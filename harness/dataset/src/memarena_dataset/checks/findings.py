"""Defines a finding of a check: its class of fault or warning, and its location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memarena_dataset.errors import RowProblem

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault (``error``) or doubt (``warning``). ``check`` names the class of fault."""

    check: str
    severity: Severity
    problem: RowProblem
