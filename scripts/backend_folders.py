"""Backends of this repository for the tools that check and build them: every folder of backends/ with a backend.toml.

python3 scripts/backend_folders.py compose    the options of `compose -f base.yaml` that build every image, in compose/

Needs nothing but Python, since images are built without .venv. Manifests are taken as they are here: the harness checks
them (memarena.execution.backends.manifests), and so do the tests.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = "compose"
"""The folder in which compose is run: the files that it is given are named relative to it."""


def folders(root: Path = ROOT) -> list[Path]:
    """The folder of every backend, sorted by name."""
    return sorted(path.parent for path in root.glob("backends/*/backend.toml"))


def packages(root: Path = ROOT) -> dict[str, Path]:
    """Python packages of all backends by name; each lies in ``src/`` of a backend's folder."""
    found = (path.parent for folder in folders(root) for path in folder.glob("src/*/__init__.py"))
    return {path.name: path for path in sorted(found)}


def backend_names(root: Path = ROOT) -> list[str]:
    """Names of all backends; a folder may hold several."""
    return [str(backend["name"]) for folder in folders(root) for backend in _backends(folder)]


def compose_files(root: Path = ROOT) -> dict[str, Path]:
    """The compose file of every backend that has one, by the backend's name, which is that of its service."""
    return {
        str(backend["name"]): Path(os.path.normpath(folder / str(backend["compose"])))
        for folder in folders(root)
        for backend in _backends(folder)
        if "compose" in backend
    }


def build_options(root: Path = ROOT) -> str:
    """What follows ``compose -f base.yaml`` to build the images of harness and backends and no other."""
    files = compose_files(root)
    named = (os.path.relpath(path, root / COMPOSE) for path in files.values())
    return " ".join([*(f"-f {name}" for name in named), "build", "harness", *files])


def _backends(folder: Path) -> list[dict[str, object]]:
    """The tables of a manifest."""
    with (folder / "backend.toml").open("rb") as file:
        tables: list[dict[str, object]] = tomllib.load(file)["backend"]
    return tables


def main(arguments: Sequence[str]) -> int:
    """Print what a tool asks for; the exit code."""
    if list(arguments) != ["compose"]:
        sys.stderr.write("error: expected compose\n")
        return 2
    sys.stdout.write(f"{build_options()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
