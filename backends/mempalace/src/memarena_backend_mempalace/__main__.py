"""Entry of ``python -m memarena_backend_mempalace``."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import run_backend

from memarena_backend_mempalace.library import keep_to_itself
from memarena_backend_mempalace.memory import MemPalaceMemory
from memarena_backend_mempalace.settings import read_settings


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(_started))


def _started(data_dir: Path) -> MemPalaceMemory:
    settings = read_settings()
    keep_to_itself(data_dir / "home")
    return MemPalaceMemory(data_dir, settings)


if __name__ == "__main__":
    main()
