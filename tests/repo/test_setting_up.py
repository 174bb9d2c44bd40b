"""Tests set-up: an unsuitable interpreter gives one line, and an up-to-date environment is not changed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    # Without the variables by which an outer make would tell this one what to print.
    outer = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    env = {name: value for name, value in os.environ.items() if name not in outer}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_an_old_python_is_refused_in_one_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1;; *) echo 3.10.13;; esac\n', encoding="utf-8")
    old.chmod(0o755)
    result = make("setup", f"PYTHON={old}")
    assert result.returncode != 0
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"error: {old} is Python 3.10.13, but 3.11 or newer is needed")


def test_a_missing_python_is_refused_in_one_line(tmp_path: Path) -> None:
    result = make("test", f"PYTHON={tmp_path / 'python9'}")
    assert result.returncode != 0
    assert (
        result.stderr.splitlines()[0] == f"error: {tmp_path / 'python9'} is not there; Python 3.11 or newer is needed"
    )


def test_asking_for_help_sets_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "setup_environment.py", tmp_path / "scripts")
    result = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.startswith("usage: ")
    assert [path.name for path in tmp_path.iterdir()] == ["scripts"]


def test_every_target_of_the_help_is_there() -> None:
    targets = [line.split()[1] for line in make("help").stdout.splitlines()]
    assert {"demo", "test", "lint", "bench", "proto", "clean"} <= set(targets)
    for target in targets:
        result = make("--dry-run", target)
        assert result.returncode == 0, result.stderr


@pytest.fixture
def setting_up(tmp_path: Path) -> ModuleType:
    """The script that makes the environment, in a copy of the files that decide whether it is up to date."""
    for name in ("hashes.txt", "requirements-dev.txt", "scripts/setup_environment.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in ("proto", "harness", "harness/answering", "backends/bm25"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(ROOT / folder / "pyproject.toml", tmp_path / folder)
    spec = importlib.util.spec_from_file_location("setting_up", tmp_path / "scripts" / "setup_environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_content_decides_whether_the_environment_is_up_to_date(setting_up: ModuleType, tmp_path: Path) -> None:
    folders = setting_up.distributions()
    assert [str(folder.relative_to(tmp_path)) for folder in folders] == [
        "backends/bm25",
        "harness",
        "harness/answering",
        "proto",
    ]
    before = setting_up.key(folders)
    os.utime(tmp_path / "hashes.txt", (0, 0))
    assert setting_up.key(folders) == before
    for name in ("hashes.txt", "requirements-dev.txt", "harness/pyproject.toml"):
        path = tmp_path / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "# more\n", encoding="utf-8")
        assert setting_up.key(folders) != before, name
        path.write_text(text, encoding="utf-8")
    assert setting_up.key(folders[1:]) != before


def test_distributions_are_installed_with_everything_optional(setting_up: ModuleType, tmp_path: Path) -> None:
    assert setting_up.with_extras(tmp_path / "backends" / "bm25") == f"{tmp_path}/backends/bm25[reference]"
    assert setting_up.with_extras(tmp_path / "proto") == f"{tmp_path}/proto"


def test_an_environment_that_is_up_to_date_is_left_alone(
    setting_up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the environment was made again")

    monkeypatch.setattr(setting_up, "make", never)
    setting_up.PYTHON.parent.mkdir(parents=True)
    setting_up.PYTHON.touch()
    with pytest.raises(AssertionError, match="made again"):
        setting_up.main()
    setting_up.STAMP.write_text(setting_up.key(setting_up.distributions()), encoding="utf-8")
    assert setting_up.main() == 0


def test_a_failed_set_up_is_not_taken_for_a_whole_one(setting_up: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise setting_up.SetupError("pip failed")

    setting_up.PYTHON.parent.mkdir(parents=True)
    setting_up.STAMP.write_text("of an earlier set-up", encoding="utf-8")
    monkeypatch.setattr(setting_up, "make", fails)
    assert setting_up.main() == 1
    assert not setting_up.STAMP.exists()


def test_an_environment_of_another_folder_is_not_used(setting_up: ModuleType) -> None:
    setting_up.MADE_FOR.parent.mkdir(parents=True)
    assert not setting_up.usable()
    setting_up.MADE_FOR.write_text("elsewhere", encoding="utf-8")
    assert not setting_up.usable()


def test_a_backend_with_an_environment_of_its_own_is_not_installed(setting_up: ModuleType, tmp_path: Path) -> None:
    before = setting_up.distributions()
    folder = tmp_path / "backends" / "apart"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "apart"\n', encoding="utf-8")
    manifest = folder / "backend.toml"
    manifest.write_text("schema = 1\n", encoding="utf-8")
    assert setting_up.distributions() == sorted([*before, folder])
    manifest.write_text('schema = 1\n[environment]\nrequirements = "requirements.txt"\n', encoding="utf-8")
    assert setting_up.distributions() == before
