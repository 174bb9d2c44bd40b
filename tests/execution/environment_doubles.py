"""A backend with its own Python environment, and a fake interpreter that makes one at once, for tests of failures.

A real environment takes long and needs the network; with the fake one a test chooses how pip fails.
"""

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
"""Shell script that acts as the Python interpreter; its ``pip install`` runs ``pip.sh`` in the backend's folder."""

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
    """The backend ``mine`` in ``folder``; its environments are made below ``root``."""

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
    """Write the fake interpreter as ``name`` into ``folder``; it reports ``version``."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(PYTHON.replace("3.99.1", version), encoding="utf-8")
    (folder / name).chmod(0o755)


def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, requirements: str = "") -> Given:
    """Write the backend with the text of its requirements, and set the variables by which the harness locates it."""
    backend = Given(tmp_path / "backends" / "mine", tmp_path / "environments")
    backend.write("backend.toml", MANIFEST.format(python=python))
    backend.write("requirements.txt", requirements)
    backend.write("constraints.txt", "")
    monkeypatch.setenv("MEMARENA_BACKENDS", str(backend.folder.parent))
    monkeypatch.setenv("MEMARENA_ENVIRONMENTS", str(backend.root))
    return backend


def given_double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: str = "exit 0") -> Given:
    """Like ``given``, with the fake interpreter on PATH; ``pip`` is the shell script that its pip runs."""
    interpreter(tmp_path / "bin", "python3.99", "3.99.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    backend = given(tmp_path, monkeypatch, "==3.99.*")
    backend.write("pip.sh", pip)
    return backend
