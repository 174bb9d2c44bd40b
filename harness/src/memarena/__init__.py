"""MemArena: the harness that measures memory backends of personal assistants.

From Python: :func:`open_run` reads a run as rows, Arrow tables and data frames, :func:`evaluate` scores one, and
:func:`run` carries one out (docs/python-api.md).
"""

from typing import TYPE_CHECKING

from memarena.lazy_imports import imported_later

if TYPE_CHECKING:
    from memarena.evaluation import evaluate
    from memarena.starting import run
    from memarena.tables.run import Run, open_run

__all__ = ["Run", "evaluate", "open_run", "run"]

_PLACES = {
    "Run": "memarena.tables.run",
    "evaluate": "memarena.evaluation",
    "open_run": "memarena.tables.run",
    "run": "memarena.starting",
}
"""Modules that are imported when a name is asked for: every command imports this package first."""

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _PLACES)
