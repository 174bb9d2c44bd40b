"""Tests scripts/conformance.py and backend_folders.py: they find every backend by its manifest, without a list."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend

import scripts.conformance as script
from scripts import backend_folders

ROOT = Path(__file__).parents[2]


def printed_by_make(target: str, path: str) -> str:
    """Return the commands that make would run on a machine with only these programs."""
    command = [shutil.which("make") or "make", "-n", target]
    environment = {**os.environ, "PATH": path, "MAKEFLAGS": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_every_backend_of_the_repository_is_checked_by_default() -> None:
    assert "scripts.conformance" in printed_by_make("conformance", os.environ["PATH"])
    names = script.all_names()
    assert {name.partition("+")[0] for name in names} == set(backend_folders.backend_names())
    assert {"bm25", "memobase+double"} <= set(names)


def test_a_backend_that_is_added_is_held_in_the_ways_that_its_manifest_names(tmp_path: Path) -> None:
    folder = tmp_path / "backends" / "added"
    folder.mkdir(parents=True)
    command = 'kind = "competitor"\ncommand = ["added"]\n'
    (folder / "backend.toml").write_text(
        f'schema = 1\n[[backend]]\nname = "plain"\n{command}[[backend]]\nname = "added"\n{command}'
        '[[backend.conformance]]\nname = "dense"\nsettings = { MODE = "dense" }\n'
        '[[backend.conformance]]\nname = "sparse"\nsettings = { MODE = "sparse" }\n'
    )
    assert script.all_names(tmp_path) == ["plain", "added+dense", "added+sparse"]


@pytest.mark.parametrize(
    ("name", "ingested"),
    [
        ("memobase+nothing", "memobase+nothing: expected one of memobase+double"),
        ("bm25+double", "bm25+double: expected one of bm25"),
        ("stranger", "--backend stranger: no backend of this name"),
        ("127.0.0.1:1", "127.0.0.1:1: expected a backend that can be started"),
    ],
)
def test_unknown_name_is_a_one_line_error(capsys: pytest.CaptureFixture[str], name: str, ingested: str) -> None:
    assert script.main([name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {ingested}")


def test_without_names_a_backend_without_its_environment_is_left_out_and_by_name_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "backend.toml").write_text(
        'schema = 1\n[environment]\nrequirements = "requirements.txt"\n'
        '[[backend]]\nname = "apart"\nkind = "competitor"\ncommand = ["{python}"]\n'
    )
    (tmp_path / "requirements.txt").touch()
    monkeypatch.setenv("MEMARENA_ENVIRONMENTS", str(tmp_path / "environments"))
    environment_names: list[str] = []
    monkeypatch.setattr(script, "make_environment", lambda environment, say: environment_names.append(environment.name))
    backend = choose_backend(f"{tmp_path}/backend.toml")
    assert isinstance(backend, LaunchableBackend)
    chosen = {"apart": (backend, None)}
    assert script.ready(chosen, by_name=False) == {}
    assert capsys.readouterr().out == "apart: left out: not installed: run memarena backends install apart\n"
    assert environment_names == []
    assert script.ready(chosen, by_name=True) == chosen
    assert environment_names == ["apart"]


def test_times_lists_each_backend_and_warns_above_the_target() -> None:
    ingested = script.times({"bm25": 6.04, "memobase+double": 120.0, "slow": 120.1})
    assert ingested[-1] == "warning: slow took 120.1 s, above 120 s"
    assert [line.split() for line in ingested[-4:-1]] == [
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
    (build,) = [line for line in printed_by_make("images", str(tmp_path)).splitlines() if "-f base.yaml" in line]
    assert f"cd compose && {program} -f base.yaml $options" in build
    assert "scripts/backend_folders.py compose" in build


def test_images_of_all_backends_with_a_compose_file_are_built_and_no_others() -> None:
    files, services = backend_folders.build_options().split(" build ")
    assert services.split() == ["harness", *backend_folders.compose_files()]
    assert {"bm25", "oracle", "memobase", "example_typescript"} <= set(services.split())
    file_names = files.removeprefix("-f ").split(" -f ")
    assert [(ROOT / "compose" / name).resolve() for name in file_names] == list(
        backend_folders.compose_files().values()
    )


COMPOSE_FILES = backend_folders.compose_files(with_environments=True)


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_a_compose_file_runs_the_backend_under_its_name(name: str) -> None:
    """The harness gets the address in one variable, and in another that a backend is a diagnostic."""
    services = yaml.safe_load(COMPOSE_FILES[name].read_text(encoding="utf-8"))["services"]
    assert "build" in services[name]
    ingested = services["harness"]["environment"]
    assert ingested[f"MEMARENA_BACKEND_{name.upper()}"] == f"{name}={name}:50051"
    backend = choose_backend(name)
    assert isinstance(backend, LaunchableBackend)
    assert ingested.get(f"MEMARENA_DIAGNOSTIC_{name.upper()}") == (name if backend.diagnostic else None)
