"""Starts a backend as a local process, and observes whether it still runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.version import Version

from memarena.execution.backends.environments import outside_the_harness
from memarena.execution.backends.isolation import LOG, ProcessIsolation, WorkFolder
from memarena.execution.backends.manifests import LaunchableBackend
from memarena.execution.errors import InfraError
from memarena.meters.footprint import Footprint, footprint_of_processes
from memarena.processes import GuardedProcess, ProcessError
from memarena.readers.helpers import KEY_VARIABLES

START_TIMEOUT_S = 60.0
_SAFE_PATH_SINCE = Version("3.11")
"""First version of Python with the option ``-P``."""
UNCONFINED = ProcessIsolation()
_CONTRACT = Path("proto/memarena/v1/memory_backend.proto")
"""File by which a checkout of this repository is recognised."""
_DEATH_S = 0.5
"""How long a process may take to end after its connection broke."""


class LaunchError(Exception):
    """A backend did not start; the message is one line with the end of its output."""

    def __init__(self, message: str, *, killed: bool = False) -> None:
        super().__init__(message)
        self.killed = killed
        """Whether another process ended it."""


class LaunchedBackend:
    """A backend's process with the address that it listens on."""

    def __init__(self, process: GuardedProcess, address: str, folder: WorkFolder) -> None:
        self._process = process
        self._folder = folder
        self.address = address

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def wait_for_death(self, timeout_s: float) -> bool:
        """Whether the process ends within ``timeout_s``; returns as soon as it does."""
        deadline = time.monotonic() + timeout_s
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.alive()

    def death(self) -> str:
        """Return one line on how the process ended, with the last lines of its output."""
        return f"exit code {self._process.poll()}: {self._process.log_tail()}"

    def killed(self) -> bool:
        """Whether another process, such as the kernel out of memory, ended it (SIGKILL)."""
        return self.wait_for_death(_DEATH_S) and self._process.killed()

    def footprint(self) -> Footprint:
        """Return the current memory of its processes and disk use of its data folder."""
        return footprint_of_processes(self._process.pid, self._folder.data)

    def stop(self) -> None:
        """End the process and all processes that it started."""
        self._process.stop()
        self._folder.bring_back()


def launch(
    backend: LaunchableBackend,
    cell_dir: Path,
    timeout_s: float = START_TIMEOUT_S,
    settings: Mapping[str, str] | None = None,
    isolation: ProcessIsolation = UNCONFINED,
) -> LaunchedBackend:
    """Start a backend in ``cell_dir`` (``data/`` has its files, ``backend.log`` its output).

    ``settings`` are environment variables that add to those of the manifest, or replace them.
    Raises :class:`LaunchError` if it exits or does not name its address within ``timeout_s``, and
    :class:`~memarena.execution.errors.InfraError` if ``cell_dir`` is removed meanwhile.
    """
    if (missing := backend.missing(settings)) is not None:
        raise LaunchError(f"backend {backend.name} cannot be started: {missing}")
    folder = WorkFolder(cell_dir, isolation)
    try:
        process, address = _start(backend, folder, timeout_s, settings or {}, isolation)
    except (LaunchError, InfraError, ProcessError):
        folder.bring_back()
        raise
    return LaunchedBackend(process, address, folder)


def _checkout_of(folder: Path) -> Path:
    """Return the checkout that has the backend's folder in ``backends/``, since a backend may read the contract there.

    For any other backend, return its own folder.
    """
    checkout = folder.parents[1] if folder.parent.name == "backends" else folder
    return checkout if (checkout / _CONTRACT).is_file() else folder


def _start(
    backend: LaunchableBackend,
    folder: WorkFolder,
    timeout_s: float,
    settings: Mapping[str, str],
    isolation: ProcessIsolation,
) -> tuple[GuardedProcess, str]:
    """Start the process and wait for its address; return both. Raises LaunchError or InfraError as ``launch`` does."""
    address_file = folder.path / "address"
    address_file.unlink(missing_ok=True)
    values = {
        "python": backend.python,
        "address_file": str(address_file.resolve()),
        "data_dir": str(folder.data.resolve()),
        "folder": str(backend.folder),
    }
    argv = [_fill(argument, values) for argument in _command(backend)]
    # A backend reaches models through the gateway alone, so it gets no keys of model servers.
    env = {**backend.manifest.env, **settings, **dict.fromkeys(KEY_VARIABLES, "")}
    paths = [_checkout_of(backend.folder), *program_folders(backend.python), *_named_paths([*argv, *env.values()])]
    visible = [path for path in paths if not any(path.is_relative_to(hidden) for hidden in isolation.hidden)]
    if backend.environment is not None:
        argv = outside_the_harness(argv, env)
    process = GuardedProcess.start(
        argv,
        log_path=folder.path / LOG,
        env={**isolation.blanked(), **env},
        # Without confinement, the user's working directory would be a hint too.
        cwd=folder.data if isolation.hidden and isolation.grade == "none" else None,
        confinement=isolation.confinement([folder.path.resolve(), *visible]),
    )
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if address_file.exists() and (address := address_file.read_text(encoding="utf-8").strip()):
            return process, address
        if not folder.path.is_dir():
            process.stop()
            raise InfraError(f"{folder.path}: was removed while backend {backend.name} started")
        if process.poll() is not None:
            reason = f"backend {backend.name} did not start: exit code {process.poll()}: {process.log_tail()}"
            if process.killed():
                process.note("killed while it started")
            raise LaunchError(reason, killed=process.killed())
        time.sleep(0.02)
    process.stop()
    raise LaunchError(f"backend {backend.name} did not name its address within {timeout_s:.0f} s: {process.log_tail()}")


def program_folders(python: str) -> list[Path]:
    """Return the folders that a Python program of this environment, or of another, needs to run.

    They include those in its ``.pth`` files, for packages installed as links to a checkout.
    """
    environments = [Path(sys.prefix), Path(python).parent.parent]
    files = [file for environment in environments for file in environment.glob("lib/python*/site-packages/*.pth")]
    lines = [line.strip() for file in files for line in file.read_text("utf-8", "replace").splitlines()]
    return [*environments, Path(sys.base_prefix), *_named_paths(lines)]


def _named_paths(words: Iterable[str]) -> list[Path]:
    """Return the absolute paths among the words with which a backend is started."""
    return [Path(word) for word in words if word.startswith("/") and len(word) > 1]


def _command(backend: LaunchableBackend) -> list[str]:
    """Return its command, with ``-P`` after ``{python}`` if Python would look for modules in the current folder."""
    program, *arguments = backend.manifest.command
    if program == "{python}" and arguments[:1] in (["-m"], ["-c"]) and backend.python_version >= _SAFE_PATH_SINCE:
        arguments.insert(0, "-P")
    return [program, *arguments]


def _fill(argument: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        argument = argument.replace("{" + name + "}", value)
    return argument
