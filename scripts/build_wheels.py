"""Builds the wheel of every distribution of this repository: python scripts/build_wheels.py [FOLDER] (default: dist).

Each is built from a copy of its folder with the licence, so that every wheel contains the licence and no stray files of
a checkout. Distributions for developers only are left out. The package of a backend with its own environment contains,
next to its manifest, the files that the environment is installed from. Needs hatchling.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FOLDER = re.compile(r"^(?:-e|--editable)[\s=]+(?P<folder>[^\s\[]+)(?P<extras>\[[^\]]*\])?", re.MULTILINE)
NOT_SHIPPED = frozenset({"memarena-judge-training"})
"""Distributions without a wheel: the texts and programs that train the judge's models."""


def distributions(root: Path = ROOT) -> dict[str, Path]:
    """Return the folders of the released distributions, by name."""
    paths = sorted([*root.glob("*/pyproject.toml"), *root.glob("*/*/pyproject.toml")])
    folders = [path.parent for path in paths if not path.relative_to(root).parts[0].startswith(".")]
    by_name = {str(project(folder)["name"]): folder for folder in folders}
    return {name: folder for name, folder in by_name.items() if name not in NOT_SHIPPED}


def project(folder: Path) -> dict[str, object]:
    """Return the table ``project`` of a distribution's pyproject.toml."""
    table: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def environment_files(folder: Path) -> dict[str, str]:
    """Return the files that a backend's environment is installed from: texts by their path in its folder.

    A requirement that is a folder, such as ``-e ../kit``, is replaced by its released version.
    """
    manifest = folder / "backend.toml"
    table = tomllib.loads(manifest.read_text(encoding="utf-8")).get("environment", {}) if manifest.exists() else {}
    names = [table[key] for key in ("requirements", "constraints", "hashes") if key in table]
    return {name: _FOLDER.sub(_release(folder), (folder / name).read_text(encoding="utf-8")) for name in names}


def _release(folder: Path) -> Callable[[re.Match[str]], str]:
    def of(match: re.Match[str]) -> str:
        metadata = project(folder / match["folder"])
        return f"{metadata['name']}{match['extras'] or ''}=={metadata['version']}"

    return of


def build(out: Path) -> list[Path]:
    """Build all wheels into ``out``, from which earlier memarena wheels are removed; return their paths, sorted."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("memarena*.whl"):
        old.unlink()
    for folder in distributions().values():
        with tempfile.TemporaryDirectory(prefix="memarena-wheel-") as scratch:
            copy = Path(scratch) / "project"
            copy.mkdir()
            for name in ("pyproject.toml", "README.md", "backend.toml"):
                if (folder / name).exists():
                    shutil.copy(folder / name, copy)
            shutil.copy(ROOT / "LICENSE", copy)
            shutil.copytree(folder / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
            for name, content in environment_files(folder).items():
                (package,) = (copy / "src").iterdir()
                (package / name).parent.mkdir(parents=True, exist_ok=True)
                (package / name).write_text(content, encoding="utf-8")
            command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out.resolve())]
            process = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SystemExit(f"error: {folder.relative_to(ROOT)}: no wheel: {process.stderr.strip()}")
    return sorted(out.glob("memarena*.whl"))


def main(arguments: Sequence[str]) -> int:
    """Build the wheels, print their paths, and return the exit code."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write("error: expected at most one argument, the folder for the wheels\n")
        return 2
    for wheel in build(Path(arguments[0]) if arguments else ROOT / "dist"):
        sys.stdout.write(f"{wheel}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
