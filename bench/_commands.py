"""Runs users' commands as programs in separate processes, for end-to-end benchmarks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection


def run(module: str, *arguments: str, accepted: Collection[int] = (0,)) -> str:
    """Run ``python -m module arguments…`` and return what it writes to stdout.

    RuntimeError, with the last line of its error output, if it ends with an exit code that is not accepted.
    """
    process = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False)
    if process.returncode not in accepted:
        error_lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        raise RuntimeError(f"{module} {arguments[0]}: {error_lines[-1]}")
    return process.stdout
