"""Generates the Python stubs of the contract into proto/src/memarena_proto, or compares them with what is committed.

    python scripts/generate_stubs.py            generate
    python scripts/generate_stubs.py --check    compare; exit 1 and a diff if the committed stubs differ

The generators are pinned in proto/requirements-generate.txt and live in their own environment below .cache/,
keyed on that file, so that a second call needs no network. The wire package is memarena.v1, which would collide with
the harness's import name; the generated imports are therefore rewritten to relative ones.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
SOURCE = "memarena/v1/memory_backend.proto"
STUBS = PROTO / "src" / "memarena_proto"
REQUIREMENTS = PROTO / "requirements-generate.txt"
NAMES = ("memory_backend_pb2.pyi", "memory_backend_pb2_grpc.pyi", "memory_backend_pb2.py", "memory_backend_pb2_grpc.py")


class GenerationError(Exception):
    """The stubs could not be generated."""


def generator_environment() -> Path:
    """Return the bin folder of an environment with the pinned generators, which is created if missing."""
    # Programs in an environment begin with its path, so each folder (links resolved) needs its own environment.
    cache = (ROOT / ".cache").resolve()
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + f"{sys.version}\n{cache}".encode()).hexdigest()[:12]
    home = cache / f"generator-{key}"
    stamp = home / "complete"
    if not stamp.exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _run([*pip, "-r", str(REQUIREMENTS)])
        stamp.touch()
    return home / "bin"


def generate(into: Path) -> dict[str, str]:
    """Generate the four stub files below ``into`` and return their texts by name, imports rewritten."""
    bin_dir = generator_environment()
    outputs = [f"--{kind}_out={into}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    path = os.pathsep.join((str(bin_dir), os.environ.get("PATH", "")))
    command = [str(bin_dir / "python"), "-m", "grpc_tools.protoc", f"-I{PROTO}", *outputs, SOURCE]
    _run(command, env={**os.environ, "PATH": path})
    folder = (into / SOURCE).parent
    return {name: rewritten(name, (folder / name).read_text(encoding="utf-8")) for name in NAMES}


def rewritten(name: str, text: str) -> str:
    """Return a generated file with relative imports instead of ``memarena.v1``."""
    if name.endswith("_grpc.py"):
        text = _replace_once(text, r"^from memarena\.v1 import memory_backend_pb2", "from . import memory_backend_pb2")
    if name.endswith("_grpc.pyi"):
        importing = r"^import memarena\.v1\.memory_backend_pb2$"
        text = _replace_once(text, importing, "from . import memory_backend_pb2 as _pb")
        text = text.replace("memarena.v1.memory_backend_pb2.", "_pb.")
    if re.search(r"^\s*(from|import) memarena\b", text, re.MULTILINE):
        raise GenerationError(f"{name}: an import of memarena.v1 is left; the generator's form has changed")
    return text


def differences(generated: dict[str, str]) -> list[str]:
    """Return a unified diff from the committed stubs to the generated ones, empty if they are the same."""
    lines: list[str] = []
    for name, text in generated.items():
        path = STUBS / name
        committed = path.read_text(encoding="utf-8") if path.exists() else ""
        lines += difflib.unified_diff(
            committed.splitlines(), text.splitlines(), f"committed/{name}", f"generated/{name}", lineterm="", n=1
        )
        if committed != text and not lines:
            lines.append(f"{name}: line ends differ")
    return lines


def _replace_once(text: str, pattern: str, replacement: str) -> str:
    replaced, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if count != 1:
        raise GenerationError(f"expected one line that matches {pattern!r}, found {count}")
    return replaced


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    process = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if process.returncode:
        raise GenerationError(f"{' '.join(command)} exited {process.returncode}:\n{process.stdout}{process.stderr}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description="Generate or compare the Python stubs of the contract.")
    parser.add_argument("--check", action="store_true", help="compare with the committed stubs, write nothing")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            generated = generate(Path(scratch))
    except GenerationError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if not options.check:
        for name, text in generated.items():
            (STUBS / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {len(generated)} stub files\n")
        return 0
    diff = differences(generated)
    if diff:
        excerpt = "\n".join(line[:160] for line in diff[:60])
        sys.stderr.write(f"{excerpt}\nerror: the committed stubs are not what {SOURCE} generates; run `make proto`\n")
        return 1
    sys.stdout.write("the committed stubs are what the contract generates\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
