"""Entry of ``python -m memarena_backend_graphiti``."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import run_backend

from memarena_backend_graphiti.memory import GraphitiMemory
from memarena_backend_graphiti.settings import read_settings


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(_started))


def _started(data_dir: Path) -> GraphitiMemory:
    """Return the memory with the settings of the environment. Raises ServeError."""
    return GraphitiMemory(data_dir, read_settings())


if __name__ == "__main__":
    main()
