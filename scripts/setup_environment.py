"""Makes the environment .venv that every make target uses, or returns at once if it is up to date.

What decides whether it is up to date is the content of the files below, the Python version and the folder, not dates:

- hashes.txt            every package with its version, from constraints.txt, and the hashes of its files
- requirements-dev.txt  the tools of the checks
- */pyproject.toml      the distributions of this repository, installed editable with all their extras; not those of
                        backends with their own environment (docs/backends.md)

Once it is up to date nothing here reaches the network.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "up-to-date"
MADE_FOR = VENV / "made-for"
PYTHON = VENV / "bin" / "python"
HASHES = ROOT / "hashes.txt"
DEV = ROOT / "requirements-dev.txt"


class SetupError(Exception):
    """The environment could not be made; the message is one line for people."""


def distributions() -> list[Path]:
    """Return the folders that hold a distribution for this environment, at most two levels down."""
    paths = [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("*/*/pyproject.toml")]
    folders = [path.parent for path in paths if not path.relative_to(ROOT).parts[0].startswith(".")]
    return sorted(folder for folder in folders if not has_environment(folder))


def has_environment(folder: Path) -> bool:
    """Whether a folder is a backend's that runs in its own environment."""
    manifest = folder / "backend.toml"
    return manifest.exists() and "environment" in tomllib.loads(manifest.read_text(encoding="utf-8"))


def with_extras(folder: Path) -> str:
    """Return the requirement that installs a distribution editable with everything optional."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ",".join(sorted(project.get("optional-dependencies", {})))
    return f"{folder}[{extras}]" if extras else str(folder)


def key(folders: Iterable[Path]) -> str:
    """Return what the environment depends on as one hash."""
    digest = hashlib.sha256(identity().encode())
    files = (Path(__file__), HASHES, DEV, *(folder / "pyproject.toml" for folder in folders))
    for path in files:
        digest.update(f"{path.name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def identity() -> str:
    """Return what an environment is made for: programs in it begin with its path, so it cannot be moved."""
    return f"{VENV}\n{sys.executable}\n{sys.version}\n"


def make(folders: Sequence[Path]) -> None:
    """Create or update the environment."""
    if not usable():
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            venv.create(VENV, with_pip=True, symlinks=True)
        except subprocess.CalledProcessError as error:
            raise SetupError(
                f"{sys.executable} cannot make an environment with pip; on Debian and Ubuntu: apt install python3-venv"
            ) from error
        MADE_FOR.write_text(identity(), encoding="utf-8")
    lines = HASHES.read_text(encoding="utf-8").splitlines()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as first:
        # Packages that come as source are built without isolation, which would fetch this without a hash.
        first.write("".join(f"{line}\n" for line in lines if line.startswith("setuptools==")))
        first.flush()
        pip("--no-deps", "--require-hashes", "-r", first.name)
    pip("--no-build-isolation", "--no-deps", "--require-hashes", "-r", str(HASHES))
    # Each also without its extras: otherwise pip does not find it for a package that requires it without extras.
    requirements = [name for folder in folders for name in dict.fromkeys((str(folder), with_extras(folder)))]
    editable = [part for name in requirements for part in ("-e", name)]
    # Without an index, so that a requirement without a hash is an error, not a download.
    pip("--no-build-isolation", "--no-index", "-r", str(DEV), *editable)


def usable() -> bool:
    """Whether an environment for this folder and this Python exists and starts."""
    if not MADE_FOR.exists() or MADE_FOR.read_text(encoding="utf-8") != identity():
        return False
    return subprocess.run([str(PYTHON), "-c", "import pip"], capture_output=True, check=False).returncode == 0


def pip(*arguments: str) -> None:
    """Install into the environment, without compiling modules, as most are never imported."""
    options = ("-qq", "--disable-pip-version-check", "--no-input", "--no-compile", "--no-warn-script-location")
    process = subprocess.run([str(PYTHON), "-m", "pip", "install", *options, *arguments], check=False)
    if process.returncode:
        raise SetupError("pip failed; its message stands above")


def main() -> int:
    """Run the command and return its exit code."""
    folders = distributions()
    current_key = key(folders)
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    with (cache / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if STAMP.exists() and STAMP.read_text(encoding="utf-8") == current_key and PYTHON.exists():
            return 0
        began = time.monotonic()
        sys.stdout.write("setting up .venv (once; a minute or two with an empty package cache)\n")
        sys.stdout.flush()
        STAMP.unlink(missing_ok=True)
        try:
            make(folders)
        except SetupError as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        STAMP.write_text(current_key, encoding="utf-8")
        sys.stdout.write(f"set up in {time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sys.exit(main())
