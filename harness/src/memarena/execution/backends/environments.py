"""Locates separate environments, for backends whose libraries conflict with the harness's.

A manifest's table ``[environment]`` names what pip installs. An environment lies in ``MEMARENA_ENVIRONMENTS`` (default:
``memarena/environments`` of the user's data folder), under a name that ends with a hash of what it is made from: after
a change the name is another, and the old environment is not used. :mod:`memarena.execution.backends.environment_making`
makes it; a stamp, a file that is written last, says that it is whole.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, field_validator

from memarena.execution.errors import RunError

STAMP = "memarena-environment.json"
ROOT_VARIABLE = "MEMARENA_ENVIRONMENTS"
_OF_THE_HARNESS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
"""Variables that would make an interpreter import the harness's packages instead of its environment's."""
_INTERPRETER = re.compile(r"python3\.(\d+)")
_ANSWER_TIMEOUT_S = 30.0
# Lines of a requirements file that name a file or folder: "-r base.txt", "-e ../kit", "--constraint=pins.txt".
_OPTION = re.compile(
    r"(?P<option>-e|--editable|-r|--requirement|-c|--constraint)[\s=]*(?P<value>\S.*?)(?:\s+#.*|\s*;.*)?"
)


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EnvironmentTable(_Strict):
    """The table ``[environment]`` of a ``backend.toml``. Files are relative to its folder."""

    python: str = ">=3.11"
    """Versions of Python that it works with, as a version specifier."""
    requirements: Annotated[str, StringConstraints(min_length=1)]
    """A requirements file of pip; paths in it are relative to the folder."""
    constraints: str = ""
    """A constraints file of pip, which pins every package."""
    hashes: str = ""
    """A requirements file of pip that lists every package with its hashes. They are installed first, without what they
    require, and ``requirements`` then without what it requires."""

    @field_validator("python")
    @classmethod
    def _is_a_specifier(cls, value: str) -> str:
        try:
            SpecifierSet(value)
        except InvalidSpecifier as error:
            raise ValueError(f'{value!r} is no version specifier such as ">=3.11"') from error
        return value


class Stamp(_Strict):
    """The stamp of a complete environment."""

    key: str
    folder: Path
    """Folder of the manifest that it was created for."""
    python: str
    """Version of its Python, such as ``3.11.2``."""
    size_bytes: int
    """Size on disk when it was created."""


@dataclass(frozen=True)
class Interpreter:
    """A Python with which environments can be created."""

    program: str
    version: str


@dataclass(frozen=True)
class EnvironmentPath:
    """Where an environment lies, or would lie, with what decides it: ``key`` is the hash of its pins and folder."""

    path: Path
    key: str
    interpreter: Interpreter

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.path / "bin" / "python"

    def whole_stamp(self) -> Stamp | None:
        """Return the stamp of the environment; None if it is missing or incomplete, or its Python was removed."""
        stamp = stamp_of(self.path)
        return stamp if stamp is not None and stamp.key == self.key and self.python.exists() else None


class BackendEnvironment(_Strict):
    """The environment of all backends of a manifest, named after the first of them; or of a reader's server."""

    name: str
    folder: Path
    table: EnvironmentTable
    command: str = ""
    """Command that creates it; empty: ``memarena backends install NAME``."""
    takes: str = "about a minute"
    """Time to create it, as text."""

    def environment_path(self) -> EnvironmentPath:
        """Return its path. Raises :class:`RunError` if a file cannot be read or no Python matches."""
        interpreter = find_interpreter(self.name, self.table.python, os.environ.get("PATH", ""))
        digest = hashlib.sha256(f"{self.folder}\n{'.'.join(interpreter.version.split('.')[:2])}\n".encode())
        for path in self._made_from():
            digest.update(f"{path}\n".encode() + hashlib.sha256(_content(path)).digest())
        key = digest.hexdigest()
        return EnvironmentPath(environments_root() / f"{self.name}-{key[:12]}", key, interpreter)

    def missing(self) -> str | None:
        """Return one line on why it cannot be used; None if it exists."""
        try:
            stamp = self.environment_path().whole_stamp()
        except RunError as error:
            return str(error)
        return None if stamp else f"not installed: run {self.command or f'memarena backends install {self.name}'}"

    def all_of_this_name(self) -> list[Path]:
        """Return the paths of all environments of this name, including incomplete and outdated ones and those of other
        folders.
        """
        return environments_of(self.name)

    def out_of_date(self) -> list[Stamp]:
        """Return the stamps of complete environments of this name and folder that are no longer used."""
        current = self.environment_path().key
        stamps = (stamp_of(path) for path in self.all_of_this_name())
        return [stamp for stamp in stamps if stamp and stamp.folder == self.folder and stamp.key != current]

    def _made_from(self) -> Iterator[Path]:
        """Yield the files whose content decides what is installed."""
        yield from _with_named_files(self.folder / self.table.requirements, self.folder)
        for name in filter(None, (self.table.constraints, self.table.hashes)):
            yield from _with_named_files(self.folder / name, self.folder)


def environments_root() -> Path:
    """Return the folder of all environments. Raises :class:`RunError` if there is none for this user."""
    if variable := os.environ.get(ROOT_VARIABLE):
        return Path(variable).absolute()
    try:
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    except RuntimeError as error:
        raise RunError(f"{ROOT_VARIABLE}: must be set, since there is no home folder") from error
    return data.absolute() / "memarena" / "environments"


def environments_of(name: str) -> list[Path]:
    """Return the paths of all environments of a name, complete or not."""
    root = environments_root()
    pattern = re.compile(re.escape(name) + "-[0-9a-f]{12}")
    return sorted(path for path in root.iterdir() if pattern.fullmatch(path.name)) if root.is_dir() else []


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of an environment; None if it has none, or if its stamp has another form."""
    try:
        return Stamp.model_validate_json((path / STAMP).read_bytes())
    except (OSError, ValidationError):
        return None


@lru_cache
def find_interpreter(name: str, specifier: str, search_path: str) -> Interpreter:
    """Return the harness's own Python if it fits, else the oldest ``python3.N`` of PATH that does.

    Raises :class:`RunError` if none does; the message lists the versions that were tried.
    """
    specifiers = SpecifierSet(specifier)
    harness_python = Interpreter(sys.executable, platform.python_version())
    if specifiers.contains(harness_python.version, prereleases=True):
        return harness_python
    interpreters, silent = _interpreters(search_path)
    for interpreter in interpreters:
        if specifiers.contains(interpreter.version, prereleases=True):
            return interpreter
    versions = [harness_python.version, *(other.version for other in interpreters)]
    versions += [f"{program} (no answer in {_ANSWER_TIMEOUT_S:.0f} s)" for program in silent]
    version_list = ", ".join(dict.fromkeys(versions))
    raise RunError(
        f"the environment of {name} needs Python {specifier}, found {version_list}: put a python3.N that fits on PATH"
    )


def _interpreters(search_path: str) -> tuple[list[Interpreter], list[str]]:
    """Return every ``python3.N`` of PATH that starts, the oldest first, and the paths of those that do not answer in
    time.

    Of several with the same N, the first on PATH counts, as in a shell.
    """
    programs: dict[int, Path] = {}
    for folder in filter(None, search_path.split(os.pathsep)):
        for path in sorted(Path(folder).glob("python3.*")):
            match = _INTERPRETER.fullmatch(path.name)
            if match and os.access(path, os.X_OK):
                programs.setdefault(int(match[1]), path)
    interpreters: list[Interpreter] = []
    silent: list[str] = []
    for _, path in sorted(programs.items()):
        ask = [str(path), "-I", "-c", "import platform; print(platform.python_version())"]
        try:
            process = subprocess.run(ask, capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=True)
        except subprocess.TimeoutExpired:
            silent.append(str(path))
            continue
        except (OSError, subprocess.SubprocessError):
            continue  # a program that does not start is not an interpreter
        interpreters.append(Interpreter(str(path), process.stdout.strip()))
    return interpreters, silent


def outside_the_harness(argv: Sequence[str], keep: Collection[str] = ()) -> list[str]:
    """Return the command that runs ``argv`` without the variables that point to the harness's packages, except
    ``keep``.
    """
    unset = [word for name in _OF_THE_HARNESS if name not in keep for word in ("-u", name)]
    return ["env", *unset, *argv]


def _with_named_files(path: Path, folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Yield a requirements file, the files that it names with -r and -c, and the pyproject.toml of each local folder in
    it.
    """
    if path in above:
        raise RunError(f"{path}: names itself with -r or -c")
    yield path
    for line in _content(path).decode(errors="replace").splitlines():
        match = _OPTION.fullmatch(line.strip())
        if match and match["option"] in ("-r", "--requirement", "-c", "--constraint"):
            named_path = Path(os.path.normpath(path.parent / match["value"]))
            yield from _with_named_files(named_path, folder, (*above, path))
            continue
        local = match["value"] if match else line.strip() if line.strip().startswith((".", "/")) else ""
        project = Path(os.path.normpath(folder / local.partition("[")[0].strip("'\""))) / "pyproject.toml"
        if local and project.is_file():
            yield project


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from error
