"""Starts child processes that never outlive this process, however it ends.

A child runs under its own small guard process (``python -m memarena.processes``). The guard holds the reading end of a
pipe whose writing end only this process has: when this process dies, SIGKILL included, the kernel closes the pipe and
the guard kills the child with everything that the child started. The guard is a "child subreaper" (prctl(2)), so that
descendants which leave their process group become its children again. If the guard itself is killed, the kernel kills
the child (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from memarena_dataset.errors import MemArenaError

from memarena.confinement import MODULE as CONFINEMENT_MODULE
from memarena.confinement import Confinement, enter_process_namespace, keep_mount_capability

if TYPE_CHECKING:
    import psutil

__all__ = ["CONFINEMENT", "STARTS_AFTER_KILL", "Confinement", "GuardedProcess", "ProcessError", "python_module"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.2
MOST_LOG_BYTES = 64 << 20
"""Limit of the file with a child's output; a longer file is cut to its last ``KEPT_LOG_BYTES``."""
KEPT_LOG_BYTES = 16 << 20
_TAIL_BYTES = 64 << 10
CONFINEMENT = CONFINEMENT_MODULE
"""Module name in the arguments of the process between a guard and a confined child."""
STARTS_AFTER_KILL = 2
"""Number of restarts of one of our servers if it is killed (SIGKILL) while it starts."""


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this interpreter, without imports from the current folder.

    Without ``-P`` Python looks for every module in the current folder first, which may be a data set's.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


class ProcessError(MemArenaError):
    """A child could not be started; the message is one line for the user."""


class GuardedProcess:
    """A running child, made by ``start``.

    ``pid`` is the guard's process id; callers do not need the child's own id, as they talk to it over a socket.
    """

    def __init__(self, guard: subprocess.Popen[bytes], pipe: int, log_path: Path) -> None:
        self._guard = guard
        self._pipe: int | None = pipe
        self.log_path = log_path
        self.pid = guard.pid

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        grace_s: float = 0.0,
        held: int | None = None,
        confinement: Confinement | None = None,
    ) -> Self:
        """Start ``argv`` with standard output and error appended to ``log_path``.

        ``env`` is added to this process's environment. When this process is gone, the child has ``grace_s`` to end
        after a SIGTERM, and its descendants as long again after its end; the guard keeps the file descriptor ``held``,
        a lock, open until all have ended. ``confinement``: paths that the child does not see.

        Raises :class:`ProcessError` if the guard cannot be started. A command that does not exist makes the guard exit
        with code 127 and a line in the log, a command that cannot be confined with code 126.
        """
        log_path.parent.mkdir(parents=True, exist_ok=True)
        reading, writing = os.pipe()
        spec = None if confinement is None else _readable(confinement.to_json())
        try:
            with log_path.open("ab") as log:
                guard = subprocess.Popen(
                    python_module("memarena.processes", f"{reading}:{grace_s:g}:{spec or ''}", *argv),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[fd for fd in (reading, held, spec) if fd is not None],
                    env={**os.environ, **(env or {})},
                    cwd=cwd,
                    # A separate session, so that Ctrl-C in the terminal reaches only the harness.
                    start_new_session=True,
                )
        except OSError as error:
            os.close(writing)
            raise ProcessError(f"cannot start {argv[0]}: {error}") from error
        finally:
            os.close(reading)
            if spec is not None:
                os.close(spec)
        return cls(guard, writing, log_path)

    def poll(self) -> int | None:
        """Return the exit code of the child, or None while it runs."""
        return self._guard.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the child and return its exit code; None if it still runs after ``timeout_s``."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._guard.wait(timeout_s)
        return None

    def killed(self) -> bool:
        """Whether it, or its guard, was ended by SIGKILL, by another process or for lack of memory, never by itself."""
        return self._guard.poll() in (128 + signal.SIGKILL, -signal.SIGKILL)

    def note(self, line: str) -> None:
        """Add a line of the harness to the child's output."""
        with self.log_path.open("a", encoding="utf-8") as log:
            log.write(f"memarena: {line}\n")

    def stop(self, grace_s: float = 5.0) -> None:
        """End the child and all its descendants: SIGTERM, then SIGKILL after ``grace_s``. Calling it twice is fine."""
        if self._guard.poll() is None:
            self._guard.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(grace_s)
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        self._guard.wait()

    def log_tail(self, lines: int = 5) -> str:
        """Return the last lines of the child's output, joined by " | "; empty if there is none."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
            text = log.read(_TAIL_BYTES).decode("utf-8", errors="replace")
        return " | ".join(line.strip() for line in text.splitlines()[-lines:] if line.strip())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _readable(text: str) -> int:
    """Return a file descriptor from which the text can be read once."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        file.write(text)
    return reading


# ------------------------------------------------------------------ the guard's side


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def _die_with_guard() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _die_with_guard_confined() -> None:
    _die_with_guard()
    keep_mount_capability()


def _runs(process: psutil.Process) -> bool:
    import psutil  # noqa: PLC0415

    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:  # its own parent has collected it meanwhile
        return False


def _kill_descendants() -> None:
    """Kill all descendants of the guard until none is left (new ones may appear meanwhile)."""
    import psutil  # noqa: PLC0415

    me = psutil.Process()
    while children := [c for c in me.children(recursive=True) if _runs(c)]:
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(children, timeout=1)


def _ended_by_themselves(grace_s: float) -> None:
    """Wait until no descendant of the guard is left, at most ``grace_s``."""
    import psutil  # noqa: PLC0415

    me, deadline = psutil.Process(), time.monotonic() + grace_s
    while time.monotonic() < deadline and any(_runs(child) for child in me.children(recursive=True)):
        time.sleep(_POLL_S / 4)


def _cut_log(most_bytes: int = MOST_LOG_BYTES, kept_bytes: int = KEPT_LOG_BYTES) -> None:
    """Keep only the end of the output if it is longer than ``most_bytes``. Output during the cut may be lost."""
    facts = os.fstat(1)
    if facts.st_size <= most_bytes or not stat.S_ISREG(facts.st_mode):
        return
    with Path("/proc/self/fd/1").open("rb") as log:
        log.seek(facts.st_size - kept_bytes)
        tail = log.read(most_bytes)  # to its end: what was written since fstat belongs to it
    os.ftruncate(1, 0)  # the child appends, so its output continues after the lines written here
    os.write(1, b"memarena: %d bytes before this were removed\n" % (facts.st_size - kept_bytes) + tail)


def _guard(pipe: int, argv: Sequence[str], grace_s: float = 0.0, spec: int | None = None) -> int:
    """Run ``argv`` until it exits, SIGTERM comes, or the pipe closes; return its exit code.

    ``spec``: a file descriptor with the confinement of ``argv``.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    fds: tuple[int, ...] = ()
    try:
        if spec is not None:
            enter_process_namespace()
            argv, fds = python_module(CONFINEMENT_MODULE, str(spec), *argv), (spec,)
        # The guard has one thread, so running code between fork and exec is safe here.
        prepare = _die_with_guard if spec is None else _die_with_guard_confined
        child = subprocess.Popen(argv, start_new_session=True, preexec_fn=prepare, pass_fds=fds)  # noqa: PLW1509
    except OSError as error:
        print(f"cannot start {argv[0]}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 127
    # Imported while the child starts: it delays no start, and is loaded before descendants must be killed.
    import psutil  # noqa: F401, PLC0415

    terminated = False
    child_exit = os.pidfd_open(child.pid)
    while child.poll() is None:
        readable, _, _ = select.select([pipe, child_exit], [], [], _POLL_S)
        with contextlib.suppress(OSError):  # a full disk ends no child
            _cut_log()
        if pipe in readable:  # nothing is ever written: readable means that the owner has ended or closed it
            break
        if not terminated and signal.sigtimedwait({signal.SIGTERM}, 0) is not None:
            child.terminate()
            terminated = True
    if grace_s:
        # The process that removes containers is a descendant too, and begins when the child has ended.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.terminate()
            child.wait(grace_s)
        if child.poll() is None:
            child.kill()
            child.wait()
        _ended_by_themselves(grace_s)
    _kill_descendants()
    code = child.wait()
    return code if code >= 0 else 128 - code


def main() -> None:
    """Entry of the guard: ``python -m memarena.processes PIPE_FD:GRACE_S:[SPEC_FD] COMMAND…``."""
    words, argv = sys.argv[1].split(":"), sys.argv[2:]
    pipe, grace_s, spec = int(words[0]), float(words[1]), int(words[2]) if words[2] else None
    os.set_inheritable(pipe, False)
    code = _guard(pipe, argv, grace_s, spec)
    sys.exit(code)


if __name__ == "__main__":
    main()
