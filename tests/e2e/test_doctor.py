"""Tests ``memarena doctor``: it starts the available backends and names missing and broken ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from memarena.cli.doctor import Finding, doctor
from memarena.meters.nvml import NOT_INSTALLED

from .harnessing import ROOT, command, memarena


def test_the_backends_of_this_checkout_are_started_and_described() -> None:
    for options, text in (((), "installed"), (("--start",), "contract 1.2")):
        result = memarena("doctor", *options)
        assert result.returncode == 0, result.stdout + result.stderr
        for name in ("bm25", "vanilla", "oracle"):
            (line,) = [x for x in result.stdout.splitlines() if x.startswith(f"backend {name} ")]
            assert " ok " in line and text in line


def test_a_hint_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("_readers", "_tools"):
        monkeypatch.setattr(f"memarena.cli.doctor.{part}", list)
    monkeypatch.setattr("memarena.cli.doctor._backends", lambda *, start: [])
    monkeypatch.setattr("memarena.cli.doctor._meters", lambda: [Finding("meter nvml", "missing", NOT_INSTALLED)])
    doctor()
    assert "(pip install 'memarena[nvml]')" in " ".join(capsys.readouterr().out.split())


@pytest.fixture(scope="module")
def with_three_more(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str]:
    """(environment, output of ``doctor --start``) with three more backends.

    ``apart`` lacks a variable that it needs, ``bad`` does not start, and ``bm25`` has the name of another backend.
    """
    folder = tmp_path_factory.mktemp("backends")
    for name, fields in (("apart", 'requires_env = ["APART_URL", "APART_KEY"]\n'), ("bad", ""), ("bm25", "")):
        (folder / name).mkdir()
        (folder / name / "backend.toml").write_text(
            f'schema = 1\n[[backend]]\nname = "{name}"\nkind = "competitor"\n{fields}'
            'command = ["{python}", "-c", "raise SystemExit(7)"]\n'
        )
    environment = {**os.environ, "MEMARENA_BACKENDS": str(folder), "APART_KEY": "k"}
    result = run("doctor --start", environment)
    assert result.returncode == 1
    return environment, result.stdout


def run(arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments.split()), capture_output=True, text=True, check=False, cwd=ROOT, env=env)


def test_a_backend_whose_server_is_not_named_is_missing_and_not_broken(
    with_three_more: tuple[dict[str, str], str], tmp_path: Path
) -> None:
    environment, output = with_three_more
    (line,) = [x for x in output.splitlines() if x.startswith("backend apart ")]
    assert "missing" in line and "APART_URL must be set" in output
    flags = f"--reader extractive --backend apart --out {tmp_path / 'run'}"
    refused = run(f"run --dataset tests/data/example {flags}", environment)
    assert refused.returncode == 2
    assert "APART_URL must be set" in refused.stderr


def test_a_backend_that_does_not_start_is_broken(with_three_more: tuple[dict[str, str], str]) -> None:
    _, output = with_three_more
    (line,) = [x for x in output.splitlines() if x.startswith("backend bad ")]
    assert "broken" in line
    assert "exit code 7" in output


def test_a_name_that_two_backends_have_is_broken(with_three_more: tuple[dict[str, str], str]) -> None:
    _, output = with_three_more
    (line,) = [x for x in output.splitlines() if x.startswith("backend bm25 ")]
    assert "broken" in line and "different backends have this" in line
