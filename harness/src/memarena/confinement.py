"""Starts a process that sees neither other processes nor the folders that are hidden from it (Linux namespaces).

A memory under test is started like this, since it could otherwise read the right answers in the data set.

The guard of :mod:`memarena.processes` enters a new process namespace and starts this module as its first process, which
makes a mount namespace: hidden folders are empty, ``/tmp``, ``/var/tmp`` and ``/dev/shm`` are new and removed at the
end, ``/dev`` has no disks, and ``/proc`` shows only this namespace. It starts the command without the capabilities that
could undo any of this, passes SIGTERM on, and reaps the command's orphans. Network and user are those of the guard.
It needs root or unprivileged user namespaces.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Self

MODULE = "memarena.confinement"
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID = 0x00020000, 0x08000000, 0x10000000, 0x20000000
"""Flags of unshare(2)."""
_BIND, _REC, _PRIVATE, _RDONLY, _REMOUNT = 4096, 16384, 1 << 18, 1, 32
_NOSUID, _NODEV = 2, 4
"""Flags of mount(2)."""
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_SYS_ADMIN = 47, 2, 21
"""Operations and arguments of prctl(2), by the kernel's headers."""
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63
"""Highest number of a capability that can exist, as a set has 64 bits."""
_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)
"""Capabilities of files, users and signals (CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID) and
NET_BIND_SERVICE, for a server that changes to its own user. No mounts, no devices, no other processes' memory."""
_SCRATCH = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_GPUS = ("nvidia*", "dri", "kfd")


@dataclass(frozen=True)
class Confinement:
    """Paths that a process does not see (``hide``), and paths that it sees even if within these (``keep``)."""

    hide: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the confinement as JSON, for :meth:`of_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """Return the confinement from the JSON of :meth:`to_json`."""
        paths = json.loads(text)
        return cls(tuple(paths["hide"]), tuple(paths["keep"]))


_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter_process_namespace() -> None:
    """Make the next child the first process of a new namespace. Raises OSError if the system does not allow it."""
    user, group = os.getuid(), os.getgid()
    if user == 0:
        _checked(_libc.unshare(_NEWPID), "unshare(PID)")
        return
    _checked(_libc.unshare(_NEWUSER | _NEWPID), "unshare(USER, PID)")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def keep_mount_capability() -> None:
    """Keep CAP_SYS_ADMIN over the exec of the first process, which a user other than root would lose.

    Runs between fork and exec.
    """
    if os.getuid() != 0:
        _set_capabilities(1 << _CAP_SYS_ADMIN, inheritable=1 << _CAP_SYS_ADMIN)
        _checked(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_SYS_ADMIN, 0, 0), "prctl(CAP_AMBIENT)")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    _checked(_libc.mount(*encoded, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def _separate(confinement: Confinement) -> None:
    """Enter and set up the mount namespace. Kept paths are opened first, and bound again if a mount covers them."""
    _checked(_libc.unshare(_NEWNS | _NEWIPC), "unshare(MOUNT, IPC)")
    _mount("none", "/", None, _REC | _PRIVATE)
    # Innermost first: a path in a hidden folder can no longer be reached once that is covered.
    hidden = {path.resolve() for path in map(Path, confinement.hide) if path.is_dir()}
    inner_first = sorted(hidden, key=_depth, reverse=True)
    # Not Path.exists, which raises for impossible paths: an option's text may begin with a slash.
    kept = sorted({Path(path) for path in confinement.keep if os.path.exists(path)})  # noqa: PTH110
    opened = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in kept}
    folder = Path.cwd()
    scratch = [path for path in _SCRATCH if path.is_dir() and not path.is_symlink()]
    _own_devices()
    for path in scratch:
        _mount("tmpfs", str(path), "tmpfs", _NOSUID | _NODEV, "mode=1777")
    _keep_below(scratch, opened)
    # A folder that is kept may hold a hidden one.
    present = [path for path in inner_first if path.is_dir()]
    for path in present:
        _mount("tmpfs", str(path), "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m")
    _keep_below(present, opened)
    for descriptor in opened.values():
        os.close(descriptor)
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV)
    # Enter the current folder by name again, since the process would otherwise still be in the hidden one.
    os.chdir(folder if folder.is_dir() else "/")


def _depth(path: Path) -> int:
    return len(path.parts)


def _keep_below(covered: Sequence[Path], opened: dict[Path, int]) -> None:
    for path, descriptor in opened.items():
        if any(path.is_relative_to(above) and path != above for above in covered):
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            _mount(f"/proc/self/fd/{descriptor}", str(path), None, _BIND | _REC)


def _own_devices() -> None:
    """Mount a /dev with the usual devices and GPUs, without disks."""
    dev = Path("/dev")
    names = [*_DEVICES, *(path.name for pattern in _GPUS for path in dev.glob(pattern))]
    opened = {name: os.open(dev / name, os.O_PATH | os.O_CLOEXEC) for name in names if (dev / name).exists()}
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID, "mode=755,size=1m")
    (dev / "shm").mkdir()
    for link, target in {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        (dev / link).symlink_to(target)
    for name, descriptor in opened.items():
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            (dev / name).mkdir()
        else:
            (dev / name).touch()
        _mount(f"/proc/self/fd/{descriptor}", str(dev / name), None, _BIND | _REC)
        os.close(descriptor)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def _set_capabilities(mask: int, inheritable: int = 0) -> None:
    header = _CapabilityHeader(_CAPABILITY_VERSION, 0)
    # Two halves of 32 bits, each with the effective, permitted and inheritable set.
    _checked(_libc.capset(ctypes.byref(header), (ctypes.c_uint32 * 6)(mask, mask, inheritable, 0, 0, 0)), "capset")


def _drop_capabilities() -> None:
    """Drop capabilities between fork and exec, so that the command can neither undo its mounts nor gain privileges."""
    kept = _KEPT_CAPABILITIES if os.getuid() == 0 else ()
    for number in range(_LAST_CAPABILITY + 1):
        if number not in kept:
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # fails for numbers that this kernel does not have
    _set_capabilities(sum(1 << number for number in kept))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(NO_NEW_PRIVS)")


def _first_process(argv: Sequence[str]) -> int:
    """Start the command, pass SIGTERM on, reap all processes that end; return the command's exit code."""
    try:
        # One thread, so that running code between fork and exec is safe.
        child = subprocess.Popen(argv, start_new_session=True, preexec_fn=_drop_capabilities)  # noqa: PLW1509
    except (OSError, subprocess.SubprocessError) as error:
        print(f"cannot start {argv[0]}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 127

    def pass_on(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)

    signal.signal(signal.SIGTERM, pass_on)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main(arguments: Iterable[str]) -> int:
    """Run ``python -m memarena.confinement SPEC_FD COMMAND…`` as the first process of a process namespace.

    Return the command's exit code, 126 if it cannot be confined, 127 if it cannot be started.
    """
    descriptor, *argv = arguments
    with os.fdopen(int(descriptor), encoding="utf-8") as file:
        confinement = Confinement.of_json(file.read())
    try:
        _separate(confinement)
    except OSError as error:
        print(f"cannot be confined: {error.strerror or error}", file=sys.stderr, flush=True)  # noqa: T201
        return 126
    return _first_process(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
