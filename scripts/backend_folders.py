"""Finds the backends of this repository, for tools that check and build them: folders of backends/ with a backend.toml.

python3 scripts/backend_folders.py compose [NAME…|--all]

prints the options of `compose -f base.yaml` (run in compose/) that build images: by default those of the harness and of
every backend, except backends with their own environment, whose images take minutes; with names only those of these
backends; with --all all of them.

Needs only Python, since images are built without .venv. Manifests are not validated here: the harness does that
(memarena.execution.backends.manifests), and so do the tests.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = "compose"
"""The folder in which ``docker compose`` runs; paths of compose files are relative to it."""


def folders(root: Path = ROOT) -> list[Path]:
    """Return the folder of every backend, sorted by name."""
    return sorted(path.parent for path in root.glob("backends/*/backend.toml"))


def packages(root: Path = ROOT) -> dict[str, Path]:
    """Return the Python packages of all backends by name; each is in ``src/`` of a backend's folder."""
    package_folders = (path.parent for folder in folders(root) for path in folder.glob("src/*/__init__.py"))
    return {path.name: path for path in sorted(package_folders)}


def backend_names(root: Path = ROOT) -> list[str]:
    """Return the names of all backends; a folder may contain several."""
    return [str(backend["name"]) for folder in folders(root) for backend in _backends(folder)]


def has_environment(folder: Path) -> bool:
    """Whether backends of a folder run in their own environment."""
    return "environment" in _manifest(folder)


def compose_files(root: Path = ROOT, *, with_environments: bool = False) -> dict[str, Path]:
    """Return the compose file of every backend that has one, by the backend's name, which is also its service's.

    Excludes backends with their own environment unless ``with_environments``.
    """
    return {
        str(backend["name"]): Path(os.path.normpath(folder / str(backend["compose"])))
        for folder in folders(root)
        if with_environments or not has_environment(folder)
        for backend in _backends(folder)
        if "compose" in backend
    }


def build_options(root: Path = ROOT, names: Sequence[str] = (), *, everything: bool = False) -> str:
    """Return the arguments after ``compose -f base.yaml`` that build the images of harness and backends, or of names.

    Raises SystemExit for a name that has no compose file.
    """
    files = compose_files(root, with_environments=everything or bool(names))
    if unknown := [name for name in names if name not in files]:
        raise SystemExit(f"error: {unknown[0]}: no backend of this name has a compose file ({', '.join(files)})")
    services = list(names) or ["harness", *files]
    files_of_names = (os.path.relpath(files[name], root / COMPOSE) for name in names or files)
    return " ".join([*(f"-f {name}" for name in files_of_names), "build", *services])


def _backends(folder: Path) -> list[dict[str, object]]:
    """Return the tables of a manifest."""
    return cast(list[dict[str, object]], _manifest(folder)["backend"])


def _manifest(folder: Path) -> dict[str, object]:
    with (folder / "backend.toml").open("rb") as file:
        return tomllib.load(file)


def main(arguments: Sequence[str]) -> int:
    """Print the requested options and return the exit code."""
    command, *names = arguments or [""]
    everything = names == ["--all"]
    if command != "compose" or (not everything and any(name.startswith("-") for name in names)):
        sys.stderr.write("error: expected compose, then names of backends or --all\n")
        return 2
    sys.stdout.write(f"{build_options(names=() if everything else names, everything=everything)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
