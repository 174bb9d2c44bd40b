"""Holds backends to SPEC.md: starts each by its manifest and runs the conformance suite against it.

python -m scripts.conformance [BACKEND[+VARIANT]…]    exit 1 if one fails a check, 2 if one cannot be started

Without a name: every backend of backends/, in each variant that its manifest lists (``conformance``); a backend whose
environment is not installed is skipped, with a line. BACKEND is a value of ``memarena run --backend`` that can be
started here: a name, a folder or a backend.toml; its environment is installed if it is missing. Several backends are
checked in parallel, since most of a run of the suite is waiting. The last lines are the duration of each. More than two
minutes is a warning, not a failure, since it depends on the machine too.
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

from memarena.conformance import (
    ConformanceError,
    RealModel,
    Settings,
    SuiteResult,
    result_line,
    run_suite,
    summary_line,
)
from memarena.execution.backends.environment_making import make_environment
from memarena.execution.backends.manifests import (
    ConformanceVariant,
    LaunchableBackend,
    choose_backend,
    load_manifest,
)
from memarena.execution.backends.process import LaunchError, launch
from memarena.execution.errors import RunError

from scripts import backend_folders

TARGET_S = 120.0
"""Seconds of wall-clock time above which a run of the suite gets a warning."""

CALL_S = 120.0
"""Timeout of a single call in seconds: a memory that embeds a thousand turns on shared cores is slow, not broken."""

SEED = 3027433293
"""Seed of the life that every backend ingests here. It is fixed, so that a result changes only with the backend or the
suite; `memarena conformance` draws a new seed for each run."""

SIDE_BY_SIDE = 5
"""Number of backends checked in parallel: one uses a quarter of a core, and more while the largest start and end."""


Chosen = tuple[LaunchableBackend, ConformanceVariant | None]


def main(names: Sequence[str]) -> int:
    """Run the suite against each backend, print the failures, and return the exit code."""
    results: dict[str, SuiteResult] = {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        try:
            chosen = ready({name: _chosen(name) for name in names or all_names()}, by_name=bool(names))
            futures = {name: pool.submit(_run_suite, *options) for name, options in chosen.items()}
            for name, future in futures.items():
                results[name] = future.result()
                _say("\n".join(lines_of(name, results[name])))
        except (RunError, LaunchError, ConformanceError) as error:
            return _refuse(str(error))
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C no further backend is started
    sys.stdout.write("".join(f"{line}\n" for line in times({name: r.duration_s for name, r in results.items()})))
    return 0 if all(result.passed for result in results.values()) else 1


def all_names(root: Path = backend_folders.ROOT) -> list[str]:
    """Return the names of all backends of a repository, as ``BACKEND+VARIANT`` if its manifest lists variants."""
    backends = (
        backend for folder in backend_folders.folders(root) for backend in load_manifest(folder / "backend.toml")
    )
    return [name for backend in backends for name in _names_of(backend)]


def ready(chosen: Mapping[str, Chosen], *, by_name: bool) -> dict[str, Chosen]:
    """Return the backends that have their environment; a missing one is installed with ``by_name``, else skipped."""
    ready = {}
    for name, (backend, variant) in chosen.items():
        environment = backend.environment
        if environment is not None and by_name:
            make_environment(environment, _say)
        elif environment is not None and (missing := environment.missing()) is not None:
            _say(f"{name}: left out: {missing}")
            continue
        ready[name] = (backend, variant)
    return ready


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _names_of(backend: LaunchableBackend) -> list[str]:
    return [f"{backend.name}+{variant.name}" for variant in backend.manifest.conformance] or [backend.name]


def _chosen(name: str) -> Chosen:
    """Return the backend and variant of a name. Raises RunError if there is no such backend or variant."""
    backend_name, plus, variant_name = (name, "", "") if Path(name).exists() else name.partition("+")
    backend = choose_backend(backend_name)
    if not isinstance(backend, LaunchableBackend):
        raise RunError(f"{name}: expected a backend that can be started; for an address there is memarena conformance")
    if not plus:
        return backend, None
    for variant in backend.manifest.conformance:
        if variant.name == variant_name:
            return backend, variant
    raise RunError(f"{name}: expected one of {', '.join(_names_of(backend))}")


def lines_of(name: str, result: SuiteResult) -> list[str]:
    """Return the lines to print for a backend: each failed check, and the summary."""
    before = [f"{name}:"] if "+" in name else []
    return [
        *before,
        *(result_line(check) for check in result.results if check.status == "failed"),
        summary_line(result),
    ]


def times(took_s: Mapping[str, float]) -> list[str]:
    """Return a line with the seconds of each backend's run, and a warning for each above the target."""
    lines = [
        f"{name:21} {took:7.1f} s  {'above' if took > TARGET_S else 'below'} {TARGET_S:g} s"
        for name, took in took_s.items()
    ]
    slow = [
        f"warning: {name} took {took:.1f} s, above {TARGET_S:g} s" for name, took in took_s.items() if took > TARGET_S
    ]
    return ["", "seconds of the suite:", *lines, *slow]


def _run_suite(backend: LaunchableBackend, variant: ConformanceVariant | None) -> SuiteResult:
    if variant is None:
        return _hold(backend, {})
    key = secrets.token_hex(8)
    with _substitute(backend, variant, key) as url:
        settings = {k: v.replace("{url}", url).replace("{key}", key) for k, v in variant.settings.items()}
        # A substitute without a setting that has its URL is a model, and replaces the suite's own extractor.
        is_model = url and not any("{url}" in value for value in variant.settings.values())
        return _hold(backend, settings, RealModel(url, None, None) if is_model else None)


@contextmanager
def _substitute(backend: LaunchableBackend, variant: ConformanceVariant, key: str) -> Iterator[str]:
    """Run the variant's substitute of a server and yield the URL that it prints; "" if the variant has none."""
    if not variant.stand_in:
        yield ""
        return
    filled = {"{python}": sys.executable, "{folder}": str(backend.folder), "{key}": key}
    command = [_fill(word, filled) for word in variant.stand_in]
    with subprocess.Popen(command, cwd=backend_folders.ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise LaunchError(f"the stand-in of {backend.name}+{variant.name} did not start")
            yield url
        finally:
            process.kill()


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _hold(backend: LaunchableBackend, settings: Mapping[str, str], extractor: RealModel | None = None) -> SuiteResult:
    with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
        process = launch(backend, Path(folder), settings=settings)
        try:
            return run_suite(process.address, real_model=extractor, settings=Settings(timeout_s=CALL_S, seed=SEED))
        finally:
            process.stop()


def _refuse(message: str) -> int:
    sys.stderr.write(f"error: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
