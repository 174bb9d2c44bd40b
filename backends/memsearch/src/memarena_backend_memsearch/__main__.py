"""Entry of ``python -m memarena_backend_memsearch``."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import CallError, ServeError, run_backend

from memarena_backend_memsearch.memory import MemSearchMemory
from memarena_backend_memsearch.settings import read_settings


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(make_memory))


def make_memory(data_dir: Path) -> MemSearchMemory:
    """Return the memory after the start of its engine, so that no call pays for it. Raises ServeError if that fails."""
    memory = MemSearchMemory(data_dir, read_settings())
    try:
        memory.start()
    except CallError as error:
        memory.close()
        raise ServeError(error.description) from error
    return memory


if __name__ == "__main__":
    main()
