"""Entry of ``python -m memarena_backend_langmem``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memarena_backend import Memory, run_backend

TELLS_OTHERS = ("LANGSMITH_", "LANGCHAIN_")
"""Prefixes of variables that can make LangSmith, a library that LangMem uses, send every prompt to a server."""


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(_started))


def _started(data_dir: Path) -> Memory:
    for name in [name for name in os.environ if name.startswith(TELLS_OTHERS)]:
        del os.environ[name]
    os.environ |= {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
    # Only now: the libraries read these variables when they are imported, and keep what they read.
    from memarena_backend_langmem.memory import LangMemMemory  # noqa: PLC0415

    return LangMemMemory(data_dir)


if __name__ == "__main__":
    main()
