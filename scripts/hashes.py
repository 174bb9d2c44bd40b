"""Writes the hashes of every file of every pinned package: one hashes.txt next to each constraints.txt.

Set-up, environments of backends and images install from these files with ``pip --require-hashes``, which refuses a file
that was replaced in transit. A line is one package with the hashes of its files for all platforms.

python -m scripts.hashes [--check]    write them (needs uv and a network); --check: compare the pins
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.install_in_image import canonical

ROOT = Path(__file__).resolve().parent.parent
HEAD = "# From constraints.txt by python -m scripts.hashes; edit that file, not this one.\n"


def main(arguments: Sequence[str]) -> int:
    """Write or compare the files and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the pins, write nothing")
    if parser.parse_args(arguments).check:
        differences = [line for path in pinning() for line in compare(path)]
        sys.stderr.writelines(f"{line}\n" for line in differences)
        return 1 if differences else 0
    if shutil.which("uv") is None:
        sys.stderr.write("error: uv is needed: pip install uv\n")
        return 2
    for path in pinning():
        hashes_of(path).write_text(HEAD + write(path), encoding="utf-8")
    return 0


def pinning() -> list[Path]:
    """Return every constraints.txt of the repository."""
    folders = (".", "backends/*", "compose/*", "harness/src/memarena/readers/environments/*")
    return [path for folder in folders for path in sorted(ROOT.glob(f"{folder}/constraints.txt"))]


def hashes_of(constraints: Path) -> Path:
    """Return the path of the hashes.txt that belongs to a constraints.txt."""
    return constraints.with_name("hashes.txt")


def write(constraints: Path) -> str:
    """Return the text of hashes.txt, with hashes from the package index. Raises CalledProcessError."""
    options = ("-q", "--no-deps", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate")
    command = ["uv", "pip", "compile", *options, "--no-header", str(constraints)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.replace(" \\\n    ", " ")


def compare(constraints: Path) -> Iterator[str]:
    """Yield a line for each difference between the pins and the lines with hashes."""
    name = hashes_of(constraints).relative_to(ROOT)
    if not hashes_of(constraints).exists():
        yield f"{name}: is not there; run python -m scripts.hashes"
        return
    pins = {_canonical(line) for line in _lines(constraints)}
    hashed = {_canonical(line.split(" ")[0]) for line in _lines(hashes_of(constraints)) if " --hash=sha256:" in line}
    for pin in sorted(pins ^ hashed):
        where = "has no hash" if pin in pins else "is pinned no more"
        yield f"{name}: {pin} {where}; run python -m scripts.hashes"


def _lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _canonical(pin: str) -> str:
    name, _, version = pin.partition("==")
    return f"{canonical(name)}=={version}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
