"""Entry of ``python -m memarena_backend_mem0``."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import Memory, run_backend

from memarena_backend_mem0.memory import Mem0Memory
from memarena_backend_mem0.settings import read_settings


def _extracting(data_dir: Path) -> Memory:
    return Mem0Memory(data_dir, read_settings(), infer=True)


def _raw(data_dir: Path) -> Memory:
    return Mem0Memory(data_dir, read_settings(), infer=False)


def main() -> None:
    """Serve the variant that ``--variant`` names until SIGTERM."""
    sys.exit(run_backend({"mem0": _extracting, "mem0_raw": _raw}))


if __name__ == "__main__":
    main()
