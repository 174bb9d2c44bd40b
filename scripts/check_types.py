"""Runs mypy over the files that pyproject.toml lists and every backend with Python code (scripts/backend_folders.py).

python -m scripts.check_types [OPTION…]

mypy has no patterns for the folders in which it looks for packages, so they are passed in MYPYPATH.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from scripts import backend_folders

ROOT = backend_folders.ROOT


def listed() -> list[str]:
    """Return the paths that pyproject.toml lists for mypy."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    files: list[str] = settings["tool"]["mypy"]["files"]
    return files


def sources(root: Path = ROOT, more: Sequence[str] | None = None) -> list[Path]:
    """Return the paths to check, relative to the repository: ``more`` (default: those listed), then the backends'."""
    tests = [folder / "tests" for folder in backend_folders.folders(root) if (folder / "tests").is_dir()]
    paths = [*backend_folders.packages(root).values(), *tests]
    return [*map(Path, listed() if more is None else more), *(path.relative_to(root) for path in paths)]


def main(arguments: Sequence[str]) -> int:
    """Run mypy in the repository with further options and return its exit code."""
    package_folders = dict.fromkeys(str(package.parent) for package in backend_folders.packages().values())
    command = [sys.executable, "-m", "mypy", *arguments, *map(str, sources())]
    path = os.pathsep.join([*package_folders, *filter(None, [os.environ.get("MYPYPATH")])])
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "MYPYPATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
