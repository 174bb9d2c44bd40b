"""Creates and removes environments of backends, atomically and by one process at a time.

A creation that does not finish leaves no stamp, and the next one begins from the start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memarena_dataset.safe_files import acquire_lock, write_whole

from memarena.execution.backends.environments import (
    ROOT_VARIABLE,
    STAMP,
    BackendEnvironment,
    EnvironmentPath,
    Stamp,
    environments_of,
    environments_root,
    outside_the_harness,
)
from memarena.execution.errors import RunError
from memarena.meters.footprint import disk_bytes
from memarena.processes import GuardedProcess

_POLL_S = 0.05
_ERROR_LINES = 3


def make_environment(environment: BackendEnvironment, say: Callable[[str], None]) -> Stamp:
    """Create an environment unless it exists. ``say`` gets a line when that begins and ends.

    Raises :class:`RunError` with the last lines of pip if it cannot be created.
    """
    location, name = environment.environment_path(), environment.name
    if (stamp := location.whole_stamp()) is not None:
        return stamp
    with _making_lock(name, say) as lock:
        if (stamp := location.whole_stamp()) is not None:
            return stamp
        say(f"making the environment of {name} (once; {environment.takes}) …")
        began = time.monotonic()
        try:
            stamp = _make(environment, location, lock)
        except OSError as error:
            raise RunError(f"{location.path}: cannot be made: {error.strerror}") from error
        finally:
            if location.whole_stamp() is None:
                shutil.rmtree(location.path, ignore_errors=True)
        say(f"the environment of {name} is made, in {time.monotonic() - began:.0f} s: {megabytes(stamp.size_bytes)}")
        return stamp


def remove_environments(name: str, say: Callable[[str], None]) -> int:
    """Remove all environments of a name, even incomplete ones and those of other folders; return their number."""
    paths = environments_of(name)
    if paths:
        with _making_lock(name, say):
            for path in paths:
                (path / STAMP).unlink(missing_ok=True)  # from now on it counts as not made
                shutil.rmtree(path)
    return len(paths)


def megabytes(size_bytes: int) -> str:
    """Return a size as text."""
    return f"{size_bytes / 1e6:.0f} MB"


@contextmanager
def _making_lock(name: str, say: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock of an environment's name; yield its file descriptor."""
    path = environments_root() / f"{name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock_when_free(path, lambda: say(f"waiting for another process that makes the environment of {name} …"))
    except OSError as error:
        raise RunError(f"{ROOT_VARIABLE}: {path.parent}: cannot be written to: {error.strerror}") from error
    try:
        yield lock
    finally:
        os.close(lock)


def _lock_when_free(path: Path, waiting: Callable[[], None]) -> int:
    """Lock a file; if another process holds the lock, call ``waiting`` once and wait."""
    with contextlib.suppress(BlockingIOError):
        return acquire_lock(path)
    waiting()
    while True:
        time.sleep(_POLL_S)
        with contextlib.suppress(BlockingIOError):
            return acquire_lock(path)


def _make(environment: BackendEnvironment, location: EnvironmentPath, lock: int) -> Stamp:
    """Make an environment, in place of an incomplete one, and return its stamp, which is written last."""
    if location.path.exists():
        shutil.rmtree(location.path)
    log = location.path.with_name(f"{environment.name}.log")
    log.unlink(missing_ok=True)
    table = environment.table
    # -I: the folder, in which pip runs, holds no modules of theirs.
    _run([location.interpreter.program, "-I", "-m", "venv", str(location.path)], environment, log, lock)
    constraints = ["-c", table.constraints] if table.constraints else []
    pip = [str(location.python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    alone = []
    if table.hashes:
        _run([*pip, "--no-deps", "--require-hashes", "-r", table.hashes], environment, log, lock)
        alone = ["--no-deps", "--no-build-isolation"]
    _run([*pip, *constraints, *alone, "-r", table.requirements], environment, log, lock)
    stamp = Stamp(
        key=location.key,
        folder=environment.folder,
        python=location.interpreter.version,
        size_bytes=disk_bytes(location.path),
    )
    write_whole(location.path / STAMP, stamp.model_dump_json())
    return stamp


def _run(argv: list[str], environment: BackendEnvironment, log: Path, lock: int) -> None:
    """Run a step in the backend's folder; it ends with this process, and the lock is held until it has ended."""
    command = outside_the_harness(argv)
    with GuardedProcess.start(command, log_path=log, cwd=environment.folder, held=lock) as process:
        while (code := process.poll()) is None:
            time.sleep(_POLL_S)
    if code:
        raise RunError(
            f"the environment of {environment.name} could not be made (exit code {code}): {_last_words(log)} "
            f"(all of it: {log})"
        )


def _last_words(log: Path) -> str:
    """Return the last errors in a log, else its last lines."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error:", "fatal:"))]
    return " | ".join((errors or lines)[-_ERROR_LINES:])
