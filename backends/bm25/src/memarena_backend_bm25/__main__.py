"""Entry of ``python -m memarena_backend_bm25``."""

from __future__ import annotations

import sys

from memarena_backend import run_backend

from memarena_backend_bm25.memory import Bm25Memory


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(lambda _: Bm25Memory()))


if __name__ == "__main__":
    main()
