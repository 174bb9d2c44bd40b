"""Tests ``masim generate --worlds``: each world is its own data set, reproducible, and skipped once complete."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memarena_dataset.io.reading import open_dataset
from memarena_masim.cli import main
from memarena_masim.output.parts import PARTS

FLAGS = ("--agents", "4", "--days", "2", "--density", "0.25", "--seed", "110", "--workers", "1")


def masim(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run ``masim generate`` in this process; return its exit code."""
    monkeypatch.setattr("sys.argv", ["masim", "generate", *FLAGS, *arguments])
    try:
        main()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    return 0


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of each file that depends on the seed alone, by relative path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "run_info.json"
    }


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three worlds of one call."""
    out = tmp_path_factory.mktemp("worlds") / "three"
    with pytest.MonkeyPatch.context() as patch:
        assert masim(patch, "--worlds", "3", "--quiet", "--out", str(out)) == 0
    return out


def test_each_world_is_its_own_data_set(worlds: Path) -> None:
    """It has its own folder, people, sessions and questions, and can be opened."""
    folders = sorted(worlds.iterdir())
    assert [folder.name for folder in folders] == ["world_00", "world_01", "world_02"]
    people = []
    for number, folder in enumerate(folders):
        with open_dataset(folder) as dataset:
            assert dataset.instances
            people.append(frozenset(dataset.agents))
        assert json.loads((folder / "pipeline_report.json").read_text())["configuration"]["world"] == number
        assert not (folder / PARTS).exists()
    assert len(set(people)) == 3
    corpora = {(folder / "corpus_sessions.jsonl").read_bytes() for folder in folders}
    assert len(corpora) == 3


def test_complete_worlds_are_skipped_and_a_missing_one_is_made(
    worlds: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The same command after one world was deleted: the others are unchanged, the new one has the same bytes."""
    import shutil

    out = Path(shutil.copytree(worlds, tmp_path / "w"))
    modified_ns = (out / "world_00" / "facts.jsonl").stat().st_mtime_ns
    shutil.rmtree(out / "world_01")
    assert masim(monkeypatch, "--worlds", "3", "--out", str(out)) == 0
    assert capsys.readouterr().out.count("questions") == 3
    assert (out / "world_00" / "facts.jsonl").stat().st_mtime_ns == modified_ns
    assert contents(out) == contents(worlds)


def test_a_call_killed_between_or_inside_worlds_is_resumed(worlds: Path, tmp_path: Path) -> None:
    """SIGKILL while the second or third world is being made: the same command gives the same bytes."""
    out = tmp_path / "w"
    flags = (*FLAGS, "--worlds", "3", "--quiet", "--out", str(out))
    command = [sys.executable, "-m", "memarena_masim", "generate", *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (out / "world_01" / PARTS).exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (out / "world_00" / "corpus_sessions.jsonl").exists()
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert contents(out) == contents(worlds)


def test_worlds_of_another_configuration_are_refused(
    worlds: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one line, and nothing is changed."""
    before = contents(worlds)
    assert masim(monkeypatch, "--worlds", "3", "--preset", "s", "--out", str(worlds)) == 2
    errors = capsys.readouterr().err
    assert "world_00: holds a data set of another configuration" in errors
    assert errors.count("\n") == 1
    assert contents(worlds) == before
