"""Identifies the code by a hash of each package in ``PACKAGES``, since code changes between releases of a version."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("memarena", "memarena_answering", "memarena_proto", "memarena_spark")
_PASSED_OVER = {"__pycache__", "node_modules", ".git", ".venv"}


def files_below(root: Path) -> list[Path]:
    """Return the files below a folder without caches, packages and repositories in it, sorted by path."""
    paths = (p for p in root.rglob("*") if p.is_file() and not _PASSED_OVER & set(p.relative_to(root).parts))
    return sorted(paths, key=lambda path: path.relative_to(root).as_posix())


def folder_sha256(*roots: Path) -> str:
    """Return the SHA-256 over names, sizes and contents of the files below the folders, in hexadecimal."""
    digest = hashlib.sha256()
    for root in roots:
        for path in files_below(root):
            digest.update(f"{path.relative_to(root).as_posix()}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def package_folder(name: str) -> Path | None:
    """Return the folder of an importable package; None if there is no package of this name."""
    spec = find_spec(name)
    return Path(spec.origin).resolve().parent if spec and spec.origin else None


@cache
def own_code() -> dict[str, str]:
    """Return the SHA-256 of each package in ``PACKAGES`` that is installed here, by its name."""
    return {name: folder_sha256(folder) for name in PACKAGES if (folder := package_folder(name)) is not None}
