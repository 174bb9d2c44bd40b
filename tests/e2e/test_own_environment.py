"""Tests a backend with its own environment, with a real Python and pip: the first run that needs it makes it."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import pytest
from memarena.log.records import BackendDescribed
from memarena.log.store import read_records

from .harnessing import EXAMPLE, ROOT, command

START = f"""
import site, runpy
import apart  # which its environment alone has
site.addsitedir({sysconfig.get_path("purelib")!r})
runpy.run_module("memarena_backend_bm25", run_name="__main__", alter_sys=True)
"""
FLAGS = '"--listen", "127.0.0.1:0", "--address-file", "{address_file}", "--data-dir", "{data_dir}"'
MANIFEST = f"""
schema = 1
[environment]
requirements = "requirements.txt"
[[backend]]
name = "own"
kind = "competitor"
command = ["{{python}}", "{{folder}}/start.py", {FLAGS}]
"""


def wheel(folder: Path) -> str:
    """Write a wheel with the module ``apart``, installable without an index or a build; return its name."""
    name = "apart-1.0-py3-none-any.whl"
    info = "apart-1.0.dist-info"
    with zipfile.ZipFile(folder / name, "w") as content:
        content.writestr("apart.py", "")
        content.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: apart\nVersion: 1.0\n")
        content.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        content.writestr(f"{info}/RECORD", "")
    return name


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The backend's folder, and variables that locate it and keep pip from any index."""
    folder = tmp_path_factory.mktemp("backends") / "own"
    folder.mkdir()
    (folder / "backend.toml").write_text(MANIFEST, encoding="utf-8")
    (folder / "start.py").write_text(START, encoding="utf-8")
    (folder / "requirements.txt").write_text(f"./{wheel(folder)}\n", encoding="utf-8")
    variables = {"MEMARENA_BACKENDS": str(folder.parent), "MEMARENA_ENVIRONMENTS": str(folder.parent / "environments")}
    return folder, {**os.environ, **variables, "PIP_NO_INDEX": "1", "VIRTUAL_ENV": "/of/the/harness"}


def memarena(env: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, cwd=ROOT, env=env)


def doctor(env: dict[str, str]) -> str:
    result = memarena({**env, "COLUMNS": "300"}, "doctor")
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("backend own ")]
    return " ".join(line.split())


def test_the_first_run_makes_the_environment_and_the_next_reuses_it(
    own: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, env = own
    assert doctor(env) == "backend own missing not installed: run memarena backends install own"
    flags = ("--dataset", EXAMPLE, "--backend", "own", "--reader", "extractive", "--limit", "1", "--floor-samples", "0")
    first = memarena(env, "run", *flags, "--out", tmp_path / "first")
    assert first.returncode == 0, first.stderr
    making_line, made_line, *further_lines = first.stderr.splitlines()
    assert making_line == "making the environment of own (once; about a minute) …"
    assert made_line.startswith("the environment of own is made, in ")
    (described,) = read_records(tmp_path / "first", "backend_described")
    assert isinstance(described, BackendDescribed) and described.name == "bm25"
    second = memarena(env, "run", *flags, "--out", tmp_path / "second")
    assert second.returncode == 0
    assert [line.replace("second", "first") for line in second.stderr.splitlines()] == further_lines
    assert doctor(env).startswith("backend own ok installed, environment of ")
    listing = memarena(env, "backends", "list").stdout
    (line,) = [line for line in listing.splitlines() if line.startswith("own ")]
    assert f"{folder}  ready, environment of " in " ".join(line.split(" "))
    removed = memarena(env, "backends", "remove", "own")
    assert (removed.returncode, removed.stdout) == (0, "own: 1 environment removed\n")
    assert "not installed" in doctor(env)


def test_unknown_requirements_give_a_one_line_error_and_exit_code_2(
    own: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, env = own
    old_requirements = (folder / "requirements.txt").read_text(encoding="utf-8")
    (folder / "requirements.txt").write_text("no-such-distribution==1\n", encoding="utf-8")
    flags = ("--dataset", EXAMPLE, "--backend", "own", "--reader", "extractive", "--out", tmp_path / "run")
    for arguments in (("backends", "install", "own"), ("run", *flags)):
        result = memarena(env, *arguments)
        assert result.returncode == 2
        begun, error = result.stderr.splitlines()
        assert begun.startswith("making the environment of own")
        assert error.startswith("error: the environment of own could not be made (exit code 1): ERROR: ")
        assert "No matching distribution found for no-such-distribution==1" in error
    (folder / "requirements.txt").write_text(old_requirements, encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("install",), "expected names of backends, or --all"),
        (("install", "own", "--all"), "expected names of backends, or --all"),
        (("install", "nobody"), "no backend of this name"),
        (("remove", "127.0.0.1:1"), "expected a backend that is started here, not an address or an image"),
    ],
)
def test_install_and_remove_name_the_argument_that_is_wrong(
    own: tuple[Path, dict[str, str]], arguments: tuple[str, ...], message: str
) -> None:
    result = memarena(own[1], "backends", *arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr


def test_a_backend_without_an_environment_needs_no_installation(own: tuple[Path, dict[str, str]]) -> None:
    result = memarena(own[1], "backends", "install", "bm25")
    assert (result.returncode, result.stdout) == (0, "bm25 has no separate environment: nothing to install\n")
    result = memarena(own[1], "backends", "remove", "bm25")
    assert (result.returncode, result.stdout) == (0, "no separate environment: nothing to remove\n")
