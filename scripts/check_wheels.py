"""Checks that the built wheels work for a user without this repository: python scripts/check_wheels.py [PYTHON].

Builds the wheels of all distributions, installs `memarena` from them into a new environment outside the repository,
and there generates a world, asks bm25 about it, reports the run, runs the demonstration, and checks bm25 against one
chapter of the contract.
PYTHON is the interpreter of the environment (default: that of .venv). Other packages come from the index that pip uses,
as constraints.txt pins them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.build_wheels import ROOT, build

LIMIT_S = 300.0
WAIT_S = 30.0
QUESTIONS = 6


class CheckError(Exception):
    """A program does not work as installed; the message is one line, then the program's output."""


class Installed:
    """An environment with ``memarena`` installed from wheels. Its commands run in ``folder``."""

    def __init__(self, python: str, wheels: Path, folder: Path) -> None:
        self.folder = folder
        self._bin = folder / "env" / "bin"
        # Variables that would lead to this checkout: to its packages or its folder of backends.
        outside = ("PYTHONPATH", "VIRTUAL_ENV", "MEMARENA_BACKENDS")
        self._env = {name: value for name, value in os.environ.items() if name not in outside}
        self._call([python, "-m", "venv", str(folder / "env")])
        quiet = ("-q", "--disable-pip-version-check", "--no-input", "--no-compile")
        where = ("--find-links", str(wheels), "-c", str(ROOT / "constraints.txt"))
        self._call([str(self._bin / "pip"), "install", *quiet, *where, "memarena"])

    def run(self, program: str, *arguments: str) -> str:
        """Run an installed program and return its stdout. Raises :class:`CheckError` if it fails."""
        return self._call([str(self._bin / program), *arguments])

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start an installed program and leave it running."""
        return subprocess.Popen([str(self._bin / program), *arguments], cwd=self.folder, env=self._env)

    def _call(self, command: Sequence[str]) -> str:
        process = subprocess.run(
            command, cwd=self.folder, env=self._env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if process.returncode:
            raise CheckError(f"exit code {process.returncode}: {' '.join(command)}\n{process.stdout}{process.stderr}")
        return process.stdout


def check(installed: Installed) -> None:
    """Run a user's first commands. Raises :class:`CheckError` at the first that does not work."""
    module_path = installed.run("python", "-c", "import memarena; print(memarena.__file__)").strip()
    if not Path(module_path).is_relative_to(installed.folder):
        raise CheckError(f"memarena is imported from {module_path}, not from the new environment")
    installed.run("masim", "generate", "--preset", "tiny", "--seed", "7", "--out", "world", "--quiet")
    flags = ("--reader", "extractive", "--limit", str(QUESTIONS), "--floor-samples", "0", "--out", "run")
    installed.run("memarena", "run", "--dataset", "world", "--backend", "bm25", *flags)
    report = installed.run("memarena", "report", "run")
    if f"{QUESTIONS} of {QUESTIONS} questions asked" not in report:
        raise CheckError(f"the report does not say that {QUESTIONS} of {QUESTIONS} questions were asked:\n{report}")
    screen = installed.run("memarena", "demo", "--dataset", "world", "--out", "demo")
    for name in ("oracle", "bm25", "vanilla"):
        if not any(line.startswith(name) for line in screen.splitlines()):
            raise CheckError(f"the demonstration's first screen has no row of {name}:\n{screen}")
    _hold_to_the_contract(installed)


def _hold_to_the_contract(installed: Installed) -> None:
    """Start the installed bm25 and run some checks of the conformance suite against it."""
    address = installed.folder / "address"
    flags = ("--listen", "127.0.0.1:0", "--address-file", str(address), "--data-dir", str(installed.folder / "data"))
    backend = installed.start("memarena-backend-bm25", *flags)
    try:
        end = time.monotonic() + WAIT_S
        while not address.exists():
            if backend.poll() is not None or time.monotonic() > end:
                raise CheckError(f"memarena-backend-bm25 did not listen within {WAIT_S:.0f} s")
            time.sleep(0.05)
        target = address.read_text(encoding="utf-8").strip()
        installed.run("memarena", "conformance", "--target", target, "--only", "dsc")
    finally:
        backend.terminate()
        backend.wait()


def main(arguments: Sequence[str]) -> int:
    """Check, and print how long it took."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write("error: expected at most one argument, the interpreter of the environment\n")
        return 2
    python = arguments[0] if arguments else sys.executable
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="memarena-wheels-") as scratch:
            folder = Path(scratch).resolve()
            build(folder / "wheels")
            installed = Installed(python, folder / "wheels", folder)
            version = installed.run("python", "-c", "import platform; print(platform.python_version())").strip()
            check(installed)
    except CheckError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(
        f"wheels work on Python {version}: installed, {QUESTIONS} questions asked, reported, demonstrated, contract "
        f"held, in {time.monotonic() - began:.0f} s\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
