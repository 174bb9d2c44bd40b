"""A backend with an environment of its own, and an interpreter that makes one at once, for tests of what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.execution.backends.environments import BackendEnvironment
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend

PYTHON = """#!/bin/sh
case "$*" in
*platform.python_version*) echo 3.99.1 ;;
*"-m venv "*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
*"-m pip install "*) echo "$*" >> pip-calls; . ./pip.sh ;;
*) echo "PYTHONPATH=$PYTHONPATH VIRTUAL_ENV=$VIRTUAL_ENV $*"; exit 9 ;;
esac
"""
"""What is a Python to those who make environments; ``pip.sh`` in the backend's folder says what its pip does."""

MANIFEST = """
schema = 1
[environment]
python = "{python}"
requirements = "requirements.txt"
constraints = "constraints.txt"
[[backend]]
name = "mine"
kind = "competitor"
command = ["{{python}}", "-m", "mine", "{{address_file}}"]
"""


@dataclass(frozen=True)
class Given:
    """A backend ``mine`` in ``folder``, and where its environments go."""

    folder: Path
    root: Path

    @property
    def backend(self) -> LaunchableBackend:
        backend = choose_backend("mine")
        assert isinstance(backend, LaunchableBackend)
        return backend

    @property
    def environment(self) -> BackendEnvironment:
        assert self.backend.environment is not None
        return self.backend.environment

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def pip_calls(self) -> list[str]:
        calls = self.folder / "pip-calls"
        return calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []


def interpreter(folder: Path, name: str, version: str) -> None:
    """Put a double of a Python into a folder of PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(PYTHON.replace("3.99.1", version), encoding="utf-8")
    (folder / name).chmod(0o755)


def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, requirements: str = "") -> Given:
    """The backend, found by its name, with empty files of its environment."""
    made = Given(tmp_path / "backends" / "mine", tmp_path / "environments")
    made.write("backend.toml", MANIFEST.format(python=python))
    made.write("requirements.txt", requirements)
    made.write("constraints.txt", "")
    monkeypatch.setenv("MEMARENA_BACKENDS", str(made.folder.parent))
    monkeypatch.setenv("MEMARENA_ENVIRONMENTS", str(made.root))
    return made


def given_double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: str = "exit 0") -> Given:
    """The backend with a double of its Python, whose pip is the shell script ``pip``."""
    interpreter(tmp_path / "bin", "python3.99", "3.99.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    made = given(tmp_path, monkeypatch, "==3.99.*")
    made.write("pip.sh", pip)
    return made
