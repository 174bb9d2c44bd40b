"""Holds backends of this repository to SPEC.md: starts each by its manifest and runs the conformance suite against it.

python scripts/conformance.py NAME…      exit 1 if one of them fails a check, 2 if one cannot be started

``memobase+double`` and ``memobase_oracle+double`` run before a stand-in for the Memobase server (tests/memobase), which
is held to recorded exchanges; plain ``memobase`` needs a real one (MEMOBASE_URL, MEMOBASE_TOKEN).
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from memarena.conformance import ConformanceError, result_line, run_suite, summary_line
from memarena.run.errors import RunError
from memarena.run.launch import LaunchError, launch
from memarena.run.manifests import LaunchableBackend, choose_backend

ROOT = Path(__file__).resolve().parent.parent
DOUBLE = "+double"
DOUBLE_KEY = secrets.token_hex(8)


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
    if not name.endswith(DOUBLE):
        return _holds(name, {})
    with _double() as settings:
        sys.stdout.write("before a stand-in for the Memobase server:\n")
        return _holds(name.removesuffix(DOUBLE), settings)


@contextmanager
def _double() -> Iterator[Mapping[str, str]]:
    """A stand-in for a Memobase server as long as needed; what its backend is told of it."""
    command = [sys.executable, "-m", "tests.memobase.double", "--scripted", "--token", DOUBLE_KEY]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise LaunchError("the stand-in for the Memobase server did not start")
            yield {"MEMOBASE_URL": url, "MEMOBASE_TOKEN": DOUBLE_KEY}
        finally:
            process.kill()


def _holds(name: str, settings: Mapping[str, str]) -> bool:
    backend = choose_backend(name)
    if not isinstance(backend, LaunchableBackend):
        raise RunError(f"{name}: expected the name of a backend; for an address there is memarena conformance")
    with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
        process = launch(backend, Path(folder), settings=settings)
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
