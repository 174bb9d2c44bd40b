"""``make conformance``: all of our backends are held to the suite by default, and the time of each is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import scripts.conformance as script

ROOT = Path(__file__).parents[2]


def printed_by_make(target: str, path: str) -> str:
    """What make would run, on a machine with these programs alone."""
    command = [shutil.which("make") or "make", "-n", target]
    environment = {**os.environ, "PATH": path, "MAKEFLAGS": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_every_backend_of_a_manifest_is_on_the_default_list() -> None:
    declared = {
        backend["name"]
        for path in ROOT.glob("backends/*/backend.toml")
        for backend in tomllib.loads(path.read_text(encoding="utf-8"))["backend"]
    }
    (line,) = [
        line
        for line in printed_by_make("conformance", os.environ["PATH"]).splitlines()
        if "scripts/conformance.py" in line
    ]
    held = {name.removesuffix(script.DOUBLE) for name in line.split("scripts/conformance.py")[1].split()}
    assert len(declared) > 6
    assert held == declared


def test_the_time_of_each_is_told_and_too_long_a_one_is_a_warning() -> None:
    told = script.times({"bm25": 6.04, "memobase+double": 120.0, "slow": 120.1})
    assert told[-1] == "warning: slow took 120.1 s, above 120 s"
    assert [line.split() for line in told[-4:-1]] == [
        ["bm25", "6.0", "s", "below", "120", "s"],
        ["memobase+double", "120.0", "s", "below", "120", "s"],
        ["slow", "120.1", "s", "above", "120", "s"],
    ]
    assert not [line for line in script.times({"bm25": 6.0}) if line.startswith("warning")]


def test_a_backend_above_the_target_is_warned_of_and_passes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "TARGET_S", 0.0)
    assert script.main(["omniscient"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("omniscient ")
    assert " 0 failed" in lines[0]
    assert lines[-1].startswith("warning: omniscient took ")


@pytest.mark.parametrize(
    ("there", "program"), [(("docker-compose", "docker"), "docker-compose"), (("docker",), "docker compose")]
)
def test_images_are_built_with_the_compose_that_is_there(tmp_path: Path, there: tuple[str, ...], program: str) -> None:
    for name in ("sh", *there):
        (tmp_path / name).symlink_to(shutil.which("sh") or "/bin/sh")
    builds = [
        line for line in printed_by_make("images", str(tmp_path)).splitlines() if line.endswith(("build", "memobase"))
    ]
    assert len(builds) == 2
    assert all(line.startswith(f"cd compose && {program} -f base.yaml ") for line in builds)
