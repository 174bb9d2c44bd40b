"""Finds backends by name, from typed ``backend.toml`` manifests.

A manifest lists one or more backends with all that the harness and the tools of this repository need to know of each;
docs/backends.md describes every field. Names are looked up in the folders of ``MEMARENA_BACKENDS`` (separated as PATH
is), in ``backends/`` of the working directory and of every folder above it, in the checkout that this program runs
from, and among installed distributions (:mod:`memarena.execution.backends.installed`). None of them has
priority: two different backends of one name are an error.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from memarena_dataset.nearest_names import nearest
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from memarena.execution.backends.environments import BackendEnvironment, EnvironmentTable
from memarena.execution.backends.installed import MANIFEST, installed_manifests
from memarena.execution.errors import RunError
from memarena.execution.reasons import reason_of

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
# NAME=BACKEND: a backend under another name.
_RENAMED = re.compile(r"(?P<name>[a-z0-9][a-z0-9_.-]*)=(?P<backend>.+)", re.DOTALL)
_IMAGE = "image:"
_IMAGE_PREFIX = "memarena-backend-"
# HOST:PORT, such as "localhost:50051" or "[::1]:50051".
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:]+\]|[^\s:=\[\]/]+):\d{1,5}")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ConformanceVariant(_Strict):
    """One way in which ``make conformance`` holds a backend to the suite, called ``BACKEND+NAME`` there.

    ``settings`` and ``stand_in`` may use ``{key}``, a secret made for the one run. ``stand_in`` may also use
    ``{python}`` (this interpreter, always) and ``{folder}``, and ``settings`` ``{url}``, the first line that the
    stand-in prints.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    settings: dict[str, str] = Field(default_factory=dict)
    """Environment variables that the backend is given."""
    stand_in: tuple[str, ...] = ()  # words: a name of the file format
    """A program in place of a server that the backend needs, run in the root of the repository until the suite ends."""

    @model_validator(mode="after")
    def _an_address_comes_from_a_program(self) -> Self:
        if not self.stand_in and any("{url}" in value for value in self.settings.values()):
            raise ValueError("settings: {url} is what a stand_in prints, and there is none")
        return self


class BackendManifest(_Strict):
    """One backend of a manifest file.

    ``command`` may use ``{python}`` (of the manifest's environment, else this interpreter), ``{address_file}``,
    ``{data_dir}`` and ``{folder}`` (of the manifest). The program writes ``HOST:PORT`` to the address file once it
    listens.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
    kind: Literal["competitor", "diagnostic"]
    description: str = ""
    whole_corpus: bool = False
    """It takes in the sessions of all persons, not just those of the one that it serves. For diagnostics alone."""
    evidence_sessions: bool = False
    """It takes in the sessions of all persons that are evidence of any question, no others. For diagnostics alone."""
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    env: dict[str, str] = Field(default_factory=dict)
    requires: tuple[str, ...] = ()
    """Paths that must exist before the backend can be started, ``{folder}`` filled in: what a build makes."""
    build: str = ""
    """What a user runs to make them."""
    requires_env: tuple[str, ...] = ()
    """Environment variables that must be set before the backend can be started, for example the URL of a server."""
    compose: str = ""
    """Compose file that builds and runs its container as the service ``name``, relative to the manifest's folder."""
    conformance: tuple[ConformanceVariant, ...] = ()
    """How ``make conformance`` holds it to the suite: once in each of these ways; once as it is if there are none."""

    @model_validator(mode="after")
    def _only_a_diagnostic_sees_everything(self) -> Self:
        for name in ("whole_corpus", "evidence_sessions"):
            if getattr(self, name) and self.kind != "diagnostic":
                raise ValueError(f"{name}: only a diagnostic may take in what its owner could not know")
        if self.whole_corpus and self.evidence_sessions:
            raise ValueError("evidence_sessions: goes without whole_corpus, which has every session")
        return self

    @model_validator(mode="after")
    def _variants_have_names_of_their_own(self) -> Self:
        if twice := _first_twice([variant.name for variant in self.conformance]):
            raise ValueError(f"conformance: the name {twice} is given twice")
        return self


class ManifestFile(_Strict):
    """A ``backend.toml``."""

    schema_version: Literal[1] = Field(alias="schema")
    environment: EnvironmentTable | None = None
    """What the backends run in; None: in the environment of the harness."""
    backend: Annotated[tuple[BackendManifest, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _backends_have_names_of_their_own(self) -> Self:
        if twice := _first_twice([backend.name for backend in self.backend]):
            raise ValueError(f"backend: the name {twice} is given twice")
        return self


def _first_twice(names: Sequence[str]) -> str | None:
    return next((name for index, name in enumerate(names) if name in names[:index]), None)


class LaunchableBackend(_Strict):
    """A backend that the harness starts itself."""

    name: str
    manifest: BackendManifest
    folder: Path
    environment: BackendEnvironment | None = None
    """Its own environment; None: it runs in that of the harness."""

    @property
    def python(self) -> str:
        """The interpreter that replaces ``{python}`` in its command."""
        return sys.executable if self.environment is None else str(self.environment.environment_path().python)

    @property
    def python_version(self) -> Version:
        """Version of that interpreter."""
        harness_version = platform.python_version()
        return Version(
            harness_version if self.environment is None else self.environment.environment_path().interpreter.version
        )

    @property
    def diagnostic(self) -> bool:
        """Whether the manifest declares a diagnostic."""
        return self.manifest.kind == "diagnostic"

    def starts_the_same(self, other: LaunchableBackend) -> bool:
        """Whether both manifests mean one program, such as a checkout and a wheel of one backend."""
        descriptive = {"description", "build", "compose", "conformance"}
        folders = {self.folder, other.folder}
        by_folder = any("{folder}" in word for word in (*self.manifest.command, *self.manifest.requires))
        has_environment = self.environment is not None or other.environment is not None
        return self.manifest.model_dump(exclude=descriptive) == other.manifest.model_dump(exclude=descriptive) and (
            len(folders) == 1 or not (by_folder or has_environment)
        )

    def missing(self, settings: Mapping[str, str] | None = None) -> str | None:
        """Return what must be installed, built or set before it can start, as one line; None if nothing is missing.

        ``settings`` are environment variables that it will be given in addition to its own.
        """
        if (unmet := self.unmet(settings)) is not None:
            return unmet
        return None if self.environment is None else self.environment.missing()

    def unmet(self, settings: Mapping[str, str] | None = None) -> str | None:
        """Return the same line as ``missing``, but without regard to its environment, which a run makes."""
        program = self.manifest.command[0]
        if "{" not in program and shutil.which(program) is None:
            return f"{program} is not installed"
        for needed_path in self.manifest.requires:
            if not Path(needed_path.replace("{folder}", str(self.folder))).exists():
                hint = f": run {self.manifest.build}" if self.manifest.build else ""
                return f"{needed_path.replace('{folder}/', '')} is missing in {self.folder.name}{hint}"
        variables = {**os.environ, **self.manifest.env, **(settings or {})}
        unset = [name for name in self.manifest.requires_env if not variables.get(name)]
        if unset:
            return f"{' and '.join(unset)} must be set: see README.md in {self.folder.name}"
        return None


class AddressedBackend(_Strict):
    """A backend that runs already. ``name`` is the user's, or the address."""

    name: str
    address: str


class ContainerBackend(_Strict):
    """A backend that the harness starts as a container. ``args`` go to the image's entry point."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
    image: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][^\s,]*$")]
    """Name, with tag or digest if wished, or id."""
    args: tuple[str, ...] = ()


BackendChoice = LaunchableBackend | AddressedBackend | ContainerBackend


def choose_backend(text: str) -> BackendChoice:
    """Return the backend that ``text`` names.

    The text is a name, ``HOST:PORT``, ``image:REFERENCE [ARGUMENT…]`` or a manifest's path. ``NAME=`` before any of
    them sets the name in the run, so that one backend can take part several times. Raises :class:`RunError` if there is
    no such backend; the message lists the known ones.
    """
    # The order decides: a path may hold "=", an image's reference ":", and a manifest's path may look like a name.
    if (match := _RENAMED.fullmatch(text)) and not Path(text).exists():
        return choose_backend(match["backend"]).model_copy(update={"name": match["name"]})
    if text.startswith(_IMAGE):
        return _container(text)
    if _ADDRESS.fullmatch(text):
        port = int(text.rpartition(":")[2])
        if not 0 < port < 1 << 16:
            raise RunError(f"--backend {text}: port {port} is not between 1 and 65535")
        return AddressedBackend(name=text, address=text)
    path = Path(text)
    if path.exists() and ("/" in text or path.suffix == ".toml"):
        return _only(path / MANIFEST if path.is_dir() else path)
    if not _NAME.fullmatch(text):
        raise RunError(
            f"--backend {text}: expected [NAME=] and a name, HOST:PORT, image:REFERENCE or the path of a backend.toml"
        )
    by_name = backends_by_name()
    if text not in by_name:
        names = ", ".join(sorted(by_name)) or "none was found"
        raise RunError(f"--backend {text}: no backend of this name (known: {names}){nearest(text, by_name)}")
    if (clash := name_clash(by_name[text])) is not None:
        raise RunError(f"--backend {text}: {clash}")
    return by_name[text][0]


def _container(text: str) -> ContainerBackend:
    """Return the backend of ``image:REFERENCE [ARGUMENT…]``, quoted as in a shell.

    Its name is that of the image, without the prefix that all images of backends have.
    """
    try:
        reference, *arguments = shlex.split(text.removeprefix(_IMAGE)) or [""]
        name = reference.rpartition("/")[2].partition("@")[0].partition(":")[0].removeprefix(_IMAGE_PREFIX)
        return ContainerBackend(name=name or "image", image=reference, args=tuple(arguments))
    except ValueError as error:  # pydantic's ValidationError is one
        raise RunError(f"--backend {text}: expected image:REFERENCE, arguments behind it if wished") from error


def backends_by_name() -> dict[str, list[LaunchableBackend]]:
    """Return every known backend by name; a name that different backends claim has all of them.

    Raises :class:`RunError` if a manifest cannot be read.
    """
    by_name: dict[str, list[LaunchableBackend]] = {}
    for path in dict.fromkeys(path.resolve() for path in _manifests()):
        for backend in load_manifest(path):
            same_name = by_name.setdefault(backend.name, [])
            if not any(backend.starts_the_same(same) for same in same_name):
                same_name.append(backend)
    return by_name


def name_clash(backends: Sequence[LaunchableBackend]) -> str | None:
    """Return one line that names the manifests if several backends claim one name; None for a single backend."""
    if len(backends) == 1:
        return None
    places = " and ".join(str(backend.folder / MANIFEST) for backend in backends)
    return f"different backends have this name: {places}; remove one of them, or give the path of the one that is meant"


def _manifests() -> Iterator[Path]:
    for root in _roots():
        yield from sorted(root.glob(f"*/{MANIFEST}"))
    yield from installed_manifests()


def load_manifest(path: Path) -> list[LaunchableBackend]:
    """Return the backends of one ``backend.toml``. Raises :class:`RunError` naming file and field."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        manifest = ManifestFile.model_validate(content)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = "".join(f"{part}." for part in first["loc"]).removesuffix(".")
        message = reason_of(first)
        raise RunError(f"{path}: {field}: {message}" if field else f"{path}: {message}") from error
    folder = path.resolve().parent
    table, name = manifest.environment, manifest.backend[0].name
    environment = None if table is None else BackendEnvironment(name=name, folder=folder, table=table)
    return [
        LaunchableBackend(name=b.name, manifest=b, folder=folder, environment=environment) for b in manifest.backend
    ]


def _only(path: Path) -> LaunchableBackend:
    backends = load_manifest(path)
    if len(backends) > 1:
        names = ", ".join(b.name for b in backends)
        raise RunError(f"--backend {path}: the manifest holds several backends ({names}); choose one by name")
    return backends[0]


def _roots() -> Iterator[Path]:
    for entry in os.environ.get("MEMARENA_BACKENDS", "").split(os.pathsep):
        if entry:
            yield Path(entry)
    working_folder = Path.cwd()
    for folder in (working_folder, *working_folder.parents, *Path(__file__).resolve().parents):
        yield folder / "backends"
