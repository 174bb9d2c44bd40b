"""Entry of ``python -m memarena_backend_memos``."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import Memory, run_backend

from memarena_backend_memos import library
from memarena_backend_memos.settings import read_settings


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(_started))


def _started(data_dir: Path) -> Memory:
    settings = read_settings()
    # The library takes seconds to import, reads its environment then, and is therefore imported here and nowhere else.
    library.keep_to_itself(data_dir / "library")
    from memarena_backend_memos.memory import MemosMemory  # noqa: PLC0415

    return MemosMemory(data_dir, settings)


if __name__ == "__main__":
    main()
