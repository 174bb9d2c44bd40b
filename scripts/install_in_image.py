"""Installs distributions of this repository into an image, so that a change of ours repeats only the last step.

python3 install_in_image.py dependencies FOLDER[EXTRA]...    what others wrote, into the new environment /opt/venv
python3 install_in_image.py more FOLDER[EXTRA]...            what these need next to it, into /opt/more
python3 install_in_image.py ours FOLDER...                   the distributions themselves, into /opt/ours
The folders of the last two are copied over /opt/venv. Neither pip nor a build tool gets there. The first step reads
nothing of a folder but its pyproject.toml. Needs nothing but Python with venv.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

VENV, MORE, OURS, TOOLS = Path("/opt/venv"), Path("/opt/more"), Path("/opt/ours"), Path("/opt/tools")
CONSTRAINTS = Path("constraints.txt")
_OURS = re.compile(r"memarena(-[a-z0-9-]+)?\b")


def foreign(specs: Iterable[str]) -> list[str]:
    """Requirements of ``FOLDER`` or ``FOLDER[EXTRA,...]`` that are no distributions of ours, each once and sorted."""
    requirements: set[str] = set()
    for spec in specs:
        folder, _, extras = spec.removesuffix("]").partition("[")
        project = tomllib.loads((Path(folder) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        requirements.update(project["dependencies"])
        for extra in filter(None, extras.split(",")):
            requirements.update(project["optional-dependencies"][extra])
    return sorted(each for each in requirements if not _OURS.match(each))


def install(*what: str, prefix: Path | None = None) -> None:
    """Into /opt/venv, or into a folder that is to be copied over it."""
    into = ["--prefix", str(prefix)] if prefix else []
    pip = [str(TOOLS / "bin/pip"), "--python", str(VENV / "bin/python"), "install", "--no-cache-dir", *into]
    subprocess.run([*pip, *what], check=True)


def main(arguments: Sequence[str]) -> int:
    """Do one step; the exit code."""
    step, *specs = arguments
    if step == "dependencies":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(VENV)], check=True)
        subprocess.run([sys.executable, "-m", "venv", str(TOOLS)], check=True)
        tool = ["install", "--no-cache-dir", "--constraint", str(CONSTRAINTS), "hatchling"]
        subprocess.run([str(TOOLS / "bin/pip"), *tool], check=True)
        install("--constraint", str(CONSTRAINTS), *foreign(specs))
    elif step == "more":
        install("--constraint", str(CONSTRAINTS), *foreign(specs), prefix=MORE)
    elif step == "ours":
        with tempfile.TemporaryDirectory() as wheels:
            for folder in specs:
                build = [str(TOOLS / "bin/python"), "-m", "hatchling", "build", "-t", "wheel", "-d", wheels]
                subprocess.run(build, cwd=folder, check=True)
            install("--no-deps", "--no-index", *map(str, sorted(Path(wheels).glob("*.whl"))), prefix=OURS)
    else:
        raise SystemExit(f"error: {step}: dependencies, more or ours is expected")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
