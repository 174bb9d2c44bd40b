"""MemArena: the harness that measures memory backends of personal assistants.

From Python: :func:`open_run` reads a run as rows, Arrow tables and data frames, :func:`evaluate` scores one, and
:func:`run` carries one out (docs/python-api.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memarena.evaluation import evaluate
    from memarena.starting import run
    from memarena.tables.run import Run, open_run

__all__ = ["Run", "evaluate", "open_run", "run"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name on first use (PEP 562), since every command imports this package first."""
        modules = {"evaluate": "evaluation", "run": "starting", "Run": "tables.run", "open_run": "tables.run"}
        if name not in modules:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{modules[name]}"), name)
