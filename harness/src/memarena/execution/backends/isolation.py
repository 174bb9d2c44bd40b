"""Decides how far a backend is kept from the data set and its gold: the grade that this machine offers or a user sets.

``container``: an image on a network without a way out, with none of the host's files. ``user``: a process that sees no
other process and neither data set nor run folder (:mod:`memarena.confinement`). ``none``: a process of the same user,
which gets no path of either and could still look for them. Reports show the grade, since a backend that can read gold
can have any score.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from memarena.execution.backends.manifests import AddressedBackend, BackendChoice, ContainerBackend, LaunchableBackend
from memarena.execution.errors import RunError
from memarena.log.records import IsolationGrade
from memarena.processes import Confinement, GuardedProcess

ProcessGrade = Literal["user", "none"]
IsolationChoice = Literal["auto", "container", "user", "none"]
_PROBE_S = 20.0
_PR_SET_DUMPABLE = 4
_NAMES_A_FOLDER = ("PWD", "OLDPWD")


@dataclass(frozen=True)
class ProcessIsolation:
    """How a backend that is started as a process is confined. ``hidden``: folders that it must not see."""

    grade: ProcessGrade = "none"
    hidden: tuple[Path, ...] = ()
    note: str = ""
    """The isolation in one line for people; "" if no backend is a process."""

    def confinement(self, keep: Iterable[Path]) -> Confinement | None:
        """Return the paths that the process must not see, and those within them that it may; None if not confined."""
        if self.grade == "none":
            return None
        return Confinement(tuple(str(path) for path in self.hidden), tuple(str(path) for path in keep))

    def blanked(self) -> dict[str, str]:
        """Return replacements for the environment's variables that name a hidden folder or the working directory.

        The value is "", but a list of folders loses only its hidden entries: without the others of ``PATH`` no program
        could be started.
        """
        patterns = [re.compile(re.escape(str(path)) + r"(?![\w-])") for path in self.hidden]

        def without(name: str, value: str) -> str:
            parts = value.split(os.pathsep) if name.endswith("PATH") else []
            others = os.pathsep.join(part for part in parts if not any(path.search(part) for path in patterns))
            return "" if any(path.search(others) for path in patterns) else others

        return {
            name: "" if name in _NAMES_A_FOLDER else without(name, value)
            for name, value in os.environ.items()
            if name in _NAMES_A_FOLDER or any(path.search(value) for path in patterns)
        }


def grade_of(choice: BackendChoice, isolation: ProcessIsolation) -> IsolationGrade:
    """Return the grade at which a backend runs; ``unknown`` for a backend that is reached at an address."""
    if isinstance(choice, AddressedBackend):
        return "unknown"
    return "container" if isinstance(choice, ContainerBackend) else isolation.grade


def process_isolation(
    choice: IsolationChoice, backends: Sequence[BackendChoice], hidden: Iterable[Path]
) -> ProcessIsolation:
    """Return the isolation of a run's backends: the best that this machine offers, or the one that was chosen.

    Raises :class:`RunError` if the machine does not offer the chosen one.
    """
    names = [backend.name for backend in backends if isinstance(backend, LaunchableBackend)]
    folders = tuple(dict.fromkeys(form for path in hidden for form in (path.absolute(), path.resolve())))
    if not names:
        return ProcessIsolation("none", folders)
    if choice == "container":
        name = names[0]
        raise RunError(f"--isolation container: {name} is a process here; run its image: --backend {name}=image:NAME")
    reason = "" if choice == "none" else why_not_confined()
    if reason and choice == "user":
        raise RunError(f"--isolation user: this machine does not offer it: {reason}")
    grade: ProcessGrade = "none" if choice == "none" or reason else "user"
    if grade == "none":
        _keep_from_readers()
        because = f" ({reason})" if reason else ""
        note = f"isolation none{because}: {', '.join(names)} could look for the data set and its gold; reports mark it"
    else:
        note = f"isolation user: {', '.join(names)} see neither data set, run folder nor other processes"
    return ProcessIsolation(grade, folders, note)


@cache
def why_not_confined() -> str:
    """Return why a process cannot be confined on this machine, from a trial; "" if it can."""
    with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
        log = Path(folder) / "probe.log"
        with GuardedProcess.start(["true"], log_path=log, confinement=Confinement(hide=(folder,))) as probe:
            code = probe.wait(_PROBE_S)
            if code == 0:
                return ""
            return probe.log_tail(1) or ("it did not end in time" if code is None else f"exit code {code}")


def _keep_from_readers() -> None:
    """Keep other processes of this user from reading this one's open files, folder and memory (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def hide_arguments(paths: Iterable[Path | None]) -> None:
    """Overwrite this program's arguments that name one of these paths, as every process of a machine can read them."""
    words = {str(path) for path in paths if path is not None}
    arguments = Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]
    start = _arguments_start()
    for argument in arguments:
        text = os.fsdecode(argument)
        # As paths: a shell completes a folder's name with a slash.
        if start and not words.isdisjoint(str(Path(part)) for part in (text, text.rpartition("=")[2]) if part):
            ctypes.memset(start, ord("."), len(argument))
        start += len(argument) + 1 if start else 0


def _arguments_start() -> int:
    """Return the address of the arguments (proc(5), stat, field 48); 0 if the system does not report it."""
    fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return int(fields[45]) if len(fields) > 45 else 0


# ------------------------------------------------------------------ the folder of a backend


class WorkFolder:
    """The folder of a backend's files while it runs: the cell's, or, if it is not confined, one apart from the run.

    The path of a cell's folder would lead an unconfined backend to the run and its answers. Links in the cell's folder
    lead to the folder apart, so that a run that goes on after it was killed still has the files.
    """

    def __init__(self, cell_dir: Path, isolation: ProcessIsolation) -> None:
        self._cell_dir = cell_dir
        cell_dir.mkdir(parents=True, exist_ok=True)
        leftover = _left_by_a_killed_run(cell_dir / _DATA)
        self.path = leftover or cell_dir
        if isolation.hidden and isolation.grade == "none":
            self.path = leftover or _apart()
            self.path.mkdir(parents=True, exist_ok=True)
            for name in (_DATA, LOG):
                self._lead_there(name)
        else:
            self.bring_back()
        (self.path / _DATA).mkdir(exist_ok=True)

    @property
    def data(self) -> Path:
        """The folder of the files that the backend keeps."""
        return self.path / _DATA

    def bring_back(self) -> None:
        """Move the files into the cell's folder, if they are in another."""
        if self.path == self._cell_dir:
            return
        for name in (_DATA, LOG):
            link, half = self._cell_dir / name, self._cell_dir / f"{name}.part"
            if half.is_dir():
                shutil.rmtree(half)
            if (self.path / name).exists():
                _without_special_files(self.path / name)
                # The link stays until the copy is complete: on another disk it may be killed, or run out of space.
                shutil.move(self.path / name, half)
            link.unlink(missing_ok=True)
            if half.exists():
                half.rename(link)
        shutil.rmtree(self.path, ignore_errors=True)
        self.path = self._cell_dir

    def _lead_there(self, name: str) -> None:
        link, target = self._cell_dir / name, self.path / name
        if link.is_symlink() and link.readlink() == target:
            return
        if link.is_symlink() and not link.exists():
            link.unlink()
        elif link.exists():
            shutil.move(link, target)
        link.symlink_to(target)


def _without_special_files(folder: Path) -> None:
    """Remove sockets, pipes and devices: they end with their process, and cannot be copied to another disk."""
    for parent, _, names in os.walk(folder):
        for path in (Path(parent) / name for name in names):
            if not (stat.S_ISREG(mode := path.lstat().st_mode) or stat.S_ISLNK(mode)):
                path.unlink()


_DATA = "data"
LOG = "backend.log"


def _apart() -> Path:
    root = Path(tempfile.gettempdir()) / _root_name()
    root.mkdir(mode=0o700, exist_ok=True)
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise RunError(f"{root}: expected a folder of this user; remove it, or set TMPDIR to another folder")
    return root / secrets.token_hex(8)


def _root_name() -> str:
    return f"memarena-{os.getuid()}"


def _left_by_a_killed_run(link: Path) -> Path | None:
    """Return the folder made by :func:`_apart` to which a cell's link leads; None for any other link, which is not
    removed.
    """
    folder = link.readlink().parent if link.is_symlink() else None
    return folder if folder is not None and folder.parent.name == _root_name() else None
