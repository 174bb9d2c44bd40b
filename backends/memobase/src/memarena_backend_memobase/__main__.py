"""Entry of ``python -m memarena_backend_memobase``."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import Memory, run_backend

from memarena_backend_memobase.memory import MemobaseMemory
from memarena_backend_memobase.oracle import MemobaseOracleMemory
from memarena_backend_memobase.settings import read_settings


def _memobase(data_dir: Path) -> Memory:
    return MemobaseMemory(data_dir, read_settings())


def _oracle(data_dir: Path) -> Memory:
    return MemobaseOracleMemory(read_settings())


def main() -> None:
    """Serve the variant that ``--variant`` names until SIGTERM."""
    sys.exit(run_backend({"memobase": _memobase, "memobase_oracle": _oracle}))


if __name__ == "__main__":
    main()
