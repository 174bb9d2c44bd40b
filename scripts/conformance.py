"""Holds backends of this repository to SPEC.md: starts each by its manifest and runs the conformance suite against it.

python scripts/conformance.py NAME…      exit 1 if one of them fails a check, 2 if one cannot be started

Several are held side by side, since most of a run of the suite is waiting. It ends with the time that each took. More
than two minutes is a warning, not a failure: the machine decides it too.

``memobase+double`` and ``memobase_oracle+double`` run before a stand-in for the Memobase server (tests/memobase), which
is held to recorded exchanges; plain ``memobase`` needs a real one (MEMOBASE_URL, MEMOBASE_TOKEN).
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from memarena.conformance import ConformanceError, SuiteResult, result_line, run_suite, summary_line
from memarena.run.errors import RunError
from memarena.run.launch import LaunchError, launch
from memarena.run.manifests import LaunchableBackend, choose_backend

ROOT = Path(__file__).resolve().parent.parent
DOUBLE = "+double"
DOUBLE_KEY = secrets.token_hex(8)
TARGET_S = 120.0
"""What the suite is meant to take at most with a healthy backend, in seconds of wall-clock time."""

SIDE_BY_SIDE = 3
"""Backends held at a time: one takes a quarter of a core, and start and end of the largest take more."""


def main(names: Sequence[str]) -> int:
    """Run the suite against each backend and print what failed; the exit code."""
    if not names:
        return _refuse("expected names of backends")
    results: dict[str, SuiteResult] = {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        begun = {name: pool.submit(_held, name) for name in names}
        try:
            for name, held in begun.items():
                results[name] = held.result()
                sys.stdout.write("".join(f"{line}\n" for line in lines_of(name, results[name])))
                sys.stdout.flush()
        except (RunError, LaunchError, ConformanceError) as error:
            return _refuse(str(error))
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C, too, none begins that has not begun
    sys.stdout.write("".join(f"{line}\n" for line in times({name: r.duration_s for name, r in results.items()})))
    return 0 if all(result.passed for result in results.values()) else 1


def lines_of(name: str, result: SuiteResult) -> list[str]:
    """What failed of a backend, one line each, and how it ended."""
    before = ["before a stand-in for the Memobase server:"] if name.endswith(DOUBLE) else []
    return [*before, *(result_line(each) for each in result.results if each.status == "failed"), summary_line(result)]


def times(took_s: Mapping[str, float]) -> list[str]:
    """A line for each backend with the seconds of its run, and a warning for each that took more than the target."""
    lines = [
        f"{name:21} {took:7.1f} s  {'above' if took > TARGET_S else 'below'} {TARGET_S:g} s"
        for name, took in took_s.items()
    ]
    slow = [
        f"warning: {name} took {took:.1f} s, above {TARGET_S:g} s" for name, took in took_s.items() if took > TARGET_S
    ]
    return ["", "seconds of the suite:", *lines, *slow]


def _held(name: str) -> SuiteResult:
    if not name.endswith(DOUBLE):
        return _hold(name, {})
    with _double() as settings:
        return _hold(name.removesuffix(DOUBLE), settings)


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


def _hold(name: str, settings: Mapping[str, str]) -> SuiteResult:
    backend = choose_backend(name)
    if not isinstance(backend, LaunchableBackend):
        raise RunError(f"{name}: expected the name of a backend; for an address there is memarena conformance")
    with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
        process = launch(backend, Path(folder), settings=settings)
        try:
            return run_suite(process.address)
        finally:
            process.stop()


def _refuse(message: str) -> int:
    sys.stderr.write(f"error: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
