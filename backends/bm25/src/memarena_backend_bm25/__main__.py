"""Entry of ``python -m memarena_backend_bm25``."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import run_backend

from memarena_backend_bm25.memory import Bm25Memory
from memarena_backend_bm25.settings import read_settings


def make_memory(data_dir: Path) -> Bm25Memory:
    """Return the memory with the settings of the environment. Raises ServeError."""
    return Bm25Memory(data_dir, read_settings())


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(make_memory))


if __name__ == "__main__":
    main()
