"""Entry of ``python -m memarena_backend_memsearch``."""

from __future__ import annotations

import sys

from memarena_backend import run_backend

from memarena_backend_memsearch.memory import MemSearchMemory
from memarena_backend_memsearch.settings import read_settings


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(lambda data_dir: MemSearchMemory(data_dir, read_settings())))


if __name__ == "__main__":
    main()
