"""Holds backends of this repository to SPEC.md: starts each by its manifest and runs the conformance suite against it.

python scripts/conformance.py NAME…      exit 1 if one of them fails a check, 2 if one cannot be started
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memarena.conformance import ConformanceError, result_line, run_suite, summary_line
from memarena.run.errors import RunError
from memarena.run.launch import LaunchError, launch
from memarena.run.manifests import AddressedBackend, choose_backend


def main(names: Sequence[str]) -> int:
    """Run the suite against each backend and print what failed; the exit code."""
    if not names:
        return _refuse("expected names of backends")
    passed = True
    for name in names:
        try:
            passed = _passes(name) and passed
        except (RunError, LaunchError, ConformanceError) as error:
            return _refuse(str(error))
    return 0 if passed else 1


def _passes(name: str) -> bool:
    backend = choose_backend(name)
    if isinstance(backend, AddressedBackend):
        raise RunError(f"{name}: expected the name of a backend; for an address there is memarena conformance")
    with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
        process = launch(backend, Path(folder))
        try:
            result = run_suite(process.address)
        finally:
            process.stop()
    for each in result.results:
        if each.status == "failed":
            sys.stdout.write(f"{result_line(each)}\n")
    sys.stdout.write(f"{summary_line(result)}\n")
    sys.stdout.flush()
    return result.passed


def _refuse(message: str) -> int:
    sys.stderr.write(f"error: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
