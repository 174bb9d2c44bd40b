"""Installs distributions of this repository into an image, in steps: a change of the code repeats only the last.

python3 install_in_image.py dependencies FOLDER[EXTRA]...    third-party packages, into the new environment /opt/venv
python3 install_in_image.py environment                      the same: all of hashes.txt
python3 install_in_image.py more FOLDER[EXTRA]...            third-party packages that /opt/venv lacks, into /opt/more
python3 install_in_image.py alone NAME...                    packages without their dependencies, into /opt/more
python3 install_in_image.py ours FOLDER...                   the distributions themselves, into /opt/ours
/opt/more and /opt/ours are copied over /opt/venv, which contains neither pip nor build tools. The first step reads only
the pyproject.toml of a folder. Versions come from constraints.txt, and pip refuses a downloaded file without a hash in
hashes.txt. Needs only Python with venv.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

VENV, MORE, OURS, TOOLS = Path("/opt/venv"), Path("/opt/more"), Path("/opt/ours"), Path("/opt/tools")
CACHE = Path("/opt/pip-cache")
"""pip's cache between its dry run, which lists packages, and the installation; removed at the end of a step."""
CONSTRAINTS, HASHES = Path("constraints.txt"), Path("hashes.txt")
BUILD_TOOLS = ("hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers")
_OURS = re.compile(r"memarena(-[a-z0-9-]+)?\b")


def foreign(specs: Iterable[str]) -> list[str]:
    """Return the third-party requirements of ``FOLDER`` or ``FOLDER[EXTRA,...]``, each once and sorted."""
    requirements: set[str] = set()
    for spec in specs:
        folder, _, extras = spec.removesuffix("]").partition("[")
        project = tomllib.loads((Path(folder) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        requirements.update(project["dependencies"])
        for extra in filter(None, extras.split(",")):
            requirements.update(project["optional-dependencies"][extra])
    return sorted(requirement for requirement in requirements if not _OURS.match(requirement))


def pip(*what: str, prefix: Path | None = None) -> str:
    """Run pip install for /opt/venv, or into ``prefix``, a folder to copy over it, and return its stdout."""
    into = ["--prefix", str(prefix)] if prefix else []
    call = [str(TOOLS / "bin/pip"), "--python", str(VENV / "bin/python"), "install", "--cache-dir", str(CACHE), *into]
    return subprocess.run([*call, *what], check=True, stdout=subprocess.PIPE, text=True).stdout


def hashed(names: Iterable[str]) -> str:
    """Return the lines of hashes.txt of some packages. Raises SystemExit if a package has none."""
    lines = all_hashed()
    packages = sorted(map(canonical, names))
    if missing := [name for name in packages if name not in lines]:
        raise SystemExit(f"error: {HASHES}: no hash of {', '.join(missing)}")
    return "".join(f"{lines[name]}\n" for name in packages)


def all_hashed() -> dict[str, str]:
    """Return the lines of hashes.txt by package."""
    lines = HASHES.read_text(encoding="utf-8").splitlines()
    return {canonical(line.split("==")[0]): line for line in lines if "==" in line}


def canonical(name: str) -> str:
    """Return a package's name in the index's normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def install(names: Iterable[str], *, python: Path = VENV, prefix: Path | None = None) -> None:
    """Install packages without their dependencies, with hash checking."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(hashed(names))
        requirements.flush()
        what = ["--no-deps", "--require-hashes", "-r", requirements.name]
        if python == TOOLS:
            subprocess.run([str(TOOLS / "bin/pip"), "install", "--no-cache-dir", *what], check=True)
        else:
            pip(*what, prefix=prefix)


def install_with_dependencies(requirements: Sequence[str], prefix: Path | None = None) -> None:
    """Install requirements and their dependencies, with hash checking: a dry run of pip lists them first."""
    dry_run = ("--dry-run", "--quiet", "--report", "-", "--constraint", str(CONSTRAINTS))
    report = json.loads(pip(*dry_run, *requirements, prefix=prefix))
    install((package["metadata"]["name"] for package in report["install"]), prefix=prefix)


def main(arguments: Sequence[str]) -> int:
    """Run one step and return the exit code."""
    step, *specs = arguments
    if step == "dependencies":
        make_environments()
        install_with_dependencies(foreign(specs))
    elif step == "environment":
        make_environments()
        install(set(all_hashed()) - {"hatchling", "editables"})
    elif step == "more":
        install_with_dependencies(foreign(specs), MORE)
    elif step == "alone":
        install(specs, prefix=MORE)
    elif step == "ours":
        with tempfile.TemporaryDirectory() as wheels:
            for folder in specs:
                build = [str(TOOLS / "bin/python"), "-m", "hatchling", "build", "-t", "wheel", "-d", wheels]
                subprocess.run(build, cwd=folder, check=True)
            pip("--no-deps", "--no-index", *map(str, sorted(Path(wheels).glob("*.whl"))), prefix=OURS)
    else:
        raise SystemExit(f"error: {step}: dependencies, environment, more, alone or ours is expected")
    shutil.rmtree(CACHE, ignore_errors=True)
    return 0


def make_environments() -> None:
    """Create the environment of the image, and another with pip and the build tools."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(VENV)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(TOOLS)], check=True)
    install(BUILD_TOOLS, python=TOOLS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
